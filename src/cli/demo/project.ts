/** The small project that the demo plays in, and the script that plays the careless agent. */
import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const files: Record<string, string> = {
  'README.md': '# Ledger\n\nReads entries, checks them, prints a report.\n',
  'package.json': '{ "name": "ledger", "version": "1.0.0", "type": "module" }\n',
  '.gitignore': 'node_modules/\n.env\n',
  '.env': 'API_KEY=only-on-this-machine\n',
  'src/app.js':
    "import { parse } from './parser.js'\nimport { report } from './report.js'\n\nreport(parse('a=1,b=2'))\n",
  'src/parser.js': 'export const parse = text => text.split(",").map(entry => entry.split("="))\n',
  'src/report.js':
    'export const report = entries => {\n  for (const [name, value] of entries) console.log(name, value)\n}\n',
  'src/store.js': 'export const store = new Map()\n',
  'src/checks.js': 'export const isValid = ([name, value]) => name !== "" && value !== ""\n',
  'test/parser.test.js': "import { parse } from '../src/parser.js'\nconsole.assert(parse('a=1').length === 1)\n",
  'node_modules/tiny-dep/index.js': 'module.exports = 42\n',
}

export const agentScript = `echo "agent: cleaning up the repository …"
rm -rf .git
rm -f src/parser.js src/store.js src/checks.js test/*.js .env
sed -i.bak 's/report(parse/reprot(parse/' src/app.js && rm -f src/app.js.bak
echo "TODO: everything is simpler now" > src/report.js
echo "agent: done, all tests pass!"
`

export function writeProject(dir: string): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, path)), { recursive: true })
    writeFileSync(join(dir, path), content)
  }
}

/** One digest over every path below `dir` with its kind, mode and content, .git included: equal means equal bytes. */
export function digestTree(dir: string): { digest: string; files: number } {
  const hash = createHash('sha256')
  let count = 0
  const visit = (path: string) => {
    const stat = lstatSync(join(dir, path))
    hash.update(`${path}\0${stat.mode.toString(8)}\0`)
    if (stat.isDirectory()) {
      for (const name of readdirSync(join(dir, path)).sort()) visit(join(path, name))
    } else {
      count++
      hash.update(stat.isSymbolicLink() ? readlinkSync(join(dir, path)) : readFileSync(join(dir, path)))
      hash.update('\0')
    }
  }
  visit('.')
  return { digest: hash.digest('hex').slice(0, 16), files: count }
}
