import { writeFileSync } from 'node:fs'
import type { Context } from '../context.ts'
import { agentScript, digestTree, writeProject } from './project.ts'
import type { Stage } from './stage.ts'

export interface DemoResult {
  identical: boolean
  digest_before: string
  digest_after_agent: string
  digest_after_undo: string
  files: number
}

/** Plays the story on `stage` and answers the proof. */
export async function play(context: Context, stage: Stage): Promise<DemoResult> {
  const { style } = context
  const line = (text: string) => (context.options.json ? undefined : context.line(text))

  await stage.say(
    `A small project in ${stage.project}: source, tests, an ignored node_modules, a secret .env${stage.hasGit ? ', a git repository' : ''}.`,
  )
  writeProject(stage.project)
  if (stage.hasGit) {
    stage.git('init', '-q', '-b', 'main')
    stage.git('add', '-A')
    stage.git('commit', '-q', '-m', 'First version')
    await stage.shell('git log --oneline && git status --short --branch')
  } else {
    line('(git is not installed here, so the part with the repository is left out)')
  }
  await stage.shell('ls -A . src')
  const before = digestTree(stage.project)

  await stage.say('This is the “agent”. It means well:')
  writeFileSync(stage.agent, agentScript)
  line(agentScript.trimEnd().replace(/^/gm, '    '))
  await stage.say('We let it work, with savepoint in front:')
  await stage.savepoint(['run', '--', 'sh', '../agent.sh'])

  await stage.say('What is left?')
  await stage.shell(stage.hasGit ? 'ls -A . src; git status' : 'ls -A . src')
  const damaged = digestTree(stage.project)
  const [run] = stage.savepointJson(['runs']) as { id: string }[]
  await stage.say(
    `${stage.hasGit ? 'The repository, half' : 'Half'} of the source and .env are gone. The timeline knows what happened:`,
  )
  await stage.savepoint(['log'])
  await stage.savepoint(['diff', run!.id, '--stat', '--', 'src', 'test', '.env'])

  await stage.say('One command takes it all back:')
  await stage.savepoint(['undo'])
  const restored = digestTree(stage.project)
  await stage.shell(
    stage.hasGit ? 'ls -A . src && git status --short --branch && git fsck --no-progress' : 'ls -A . src',
  )

  const identical = before.digest === restored.digest
  line(`\nProof: one digest over every path, mode and byte, ${stage.hasGit ? '.git included' : 'of the whole project'}`)
  line(`  before the agent  ${before.digest}  ${before.files} files`)
  line(`  after the agent   ${damaged.digest}  ${damaged.files} files`)
  line(`  after undo        ${restored.digest}  ${restored.files} files`)
  line(
    identical ? style.green('  Byte for byte the same.') : style.red('  NOT THE SAME: this is a defect of Savepoint.'),
  )

  await stage.say(
    'And nothing is lost in the other direction either: `savepoint redo` would bring the agent’s work back.',
  )
  await stage.savepoint(['operations'])
  await stage.say('That was it; the directory of this demo is removed. Now yours: savepoint run -- YOUR-AGENT')
  return {
    identical,
    digest_before: before.digest,
    digest_after_agent: damaged.digest,
    digest_after_undo: restored.digest,
    files: before.files,
  }
}
