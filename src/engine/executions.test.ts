import { expect, it } from 'vitest'
import { namingFirst } from './executions.ts'

it('of what may have changed a path, those come first whose words name it, or what it lies in', () => {
  const words = ['touch 5', 'rm -r d', 'sed -i s/d/e/ e', 'cp a /w/d/x', 'rm x', 'mv ../d old', 'touch dx']
  const executions = words.map(each => ({ argv: each.split(' '), cwd: each.startsWith('mv') ? '/w/sub' : '/w' }))
  const byName = namingFirst({ targetPath: Buffer.from('/w') }, 'd/x')
  const sorted = executions.toSorted(byName).map(({ argv }) => argv.join(' '))
  expect(sorted).toEqual(['rm -r d', 'cp a /w/d/x', 'mv ../d old', 'touch 5', 'sed -i s/d/e/ e', 'rm x', 'touch dx'])
})
