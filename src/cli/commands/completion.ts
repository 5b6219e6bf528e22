import type { Command } from 'commander'
import { nearest } from '../../model/suggest.ts'
import { completionScripts, type Shell, shells } from '../completion-scripts.ts'
import { define, handle } from '../define.ts'
import { wrongUsage } from '../usage.ts'

export function register(program: Command): void {
  define(program, {
    name: 'completion',
    group: 'more',
    summary: 'print a completion script for bash, zsh or fish',
    description:
      'Prints a script that completes commands, options, snapshots, tags, labels, runs and paths in your shell.',
    usage: 'bash|zsh|fish',
    examples: [
      ['completion bash >> ~/.bashrc', 'bash: for every new shell'],
      ['completion zsh > ~/.zfunc/_savepoint', 'zsh: into a directory of $fpath'],
      ['completion fish > ~/.config/fish/completions/savepoint.fish', 'fish'],
    ],
  })
    .argument('<shell>', shells.join(', '))
    .action(
      handle((context, { words: [shell] }) => {
        const script = completionScripts[shell as Shell]
        if (script === undefined)
          throw wrongUsage(
            'completion',
            `"${shell}" is no shell that can be completed`,
            nearest(shell!, shells) ?? shells.join(', '),
          )
        if (context.options.json) return context.json({ shell, script })
        context.output.write(script)
      }),
    )
}
