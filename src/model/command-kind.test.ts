import { expect, test } from 'vitest'
import { commitOf, destructiveOf } from './command-kind.ts'
import { matchesCommand } from './command-pattern.ts'
import { callOf } from './command-words.ts'
import { milestoneOf } from './milestone.ts'

const words = (line: string): string[] => line.split(' ')
const none = { buildCommands: [], testCommands: [] }

test.each<[line: string, operands: string[] | undefined]>([
  ['rm -r -- a -b', ['a', '-b']],
  ['mv a -- -b', ['-b', '-b/a']],
  ['rm -rf a b', ['a', 'b']],
  ['rm --recurs a', ['a']],
  ['rm --interactive a', undefined],
  ['rm a', undefined],
  ['rm -f a', undefined],
  ['/usr/bin/rm -vR a', ['a']],
  ['find . -name x -delete', ['.']],
  ['find -delete', []],
  ['find a b ( -name x ) -exec rm -f {} +', ['a', 'b']],
  ['find a -exec grep -l x {} +', undefined],
  ['btrfs subvolume delete -c a b', ['a', 'b']],
  ['btrfs su del a', ['a']],
  ['btrfs subvolume list a', undefined],
  ['zfs rollback -r tank/a@b', ['/']],
  ['zfs destroy -r tank/a', ['/']],
  ['zfs destroy tank/a@b', undefined],
  ['zfs receive -F tank/a', ['/']],
  ['zfs list tank/a', undefined],
  ['zpool export tank', ['/']],
  ['zpool status', undefined],
  ['dd if=x of=y', ['y']],
  ['dd if=x', undefined],
  ['sed -i s/a/b/ f', ['s/a/b/', 'f']],
  ['sed -ni.bak p f', ['p', 'f']],
  ['sed --in-pl=.bak p f', ['p', 'f']],
  ['sed --expression p f', undefined],
  ['gsed -i p f', ['p', 'f']],
  ['gsed -n p f', undefined],
  ['sed s/-i/x/ f', undefined],
  ['rsync -a --delete-after x/ y', ['y']],
  ['rsync -a x y', undefined],
  ['mv a b', ['b', 'b/a']],
  ['npm uninstall left-pad', []],
  ['npm install left-pad', undefined],
  ['npm --prefix web uninstall left-pad', ['web']],
  ['npm --prefix=web ci', ['web']],
  ['npm --loglevel silent rm x', []],
  ['pnpm -C web remove x', ['web']],
  ['pip uninstall -y x', []],
  ['pipx uninstall x', []],
  ['pipx list', undefined],
  ['python3 -m pip uninstall x', []],
  ['python3 -m pip install x', undefined],
  ['python3 -c 1', undefined],
  ['find -L a -delete', ['a']],
  ['find -O3 -D stat -P a b -name x -delete', ['a', 'b']],
  ['find -H -delete', []],
  ['busybox rm -rf a', ['a']],
  ['mv -t d a x/b/', ['d/a', 'd/b']],
  ['mv --target-directory=d a', ['d/a']],
  ['mv --target d a', ['d/a']],
  ['mv --no-clob a b', undefined],
  ['mv --no-target-directory a b', ['b', 'b/a']],
  ['mkswap swap.img', ['swap.img']],
  ['blkdiscard -f disk.img', ['disk.img']],
  ['wipefs disk.img', undefined],
  ['wipefs -an disk.img', undefined],
  ['wipefs --all disk.img', ['disk.img']],
  ['chmod --reference=b a', undefined],
  ['git --git-dir=/r/.git reset --hard', ['.', '/r/.git']],
  ['git --git-dir /r/.git --work-tree /w reset --hard', ['/w', '/r/.git']],
  ['node /usr/lib/npm/bin/npm.js ci', []],
  ['git reset --hard HEAD~1', ['.']],
  ['git -C sub reset --hard', ['sub']],
  ['git -C /a -C b reset --hard', ['/a/b']],
  ['git -c x=y --no-pager clean -fdx', ['.']],
  ['git clean -nfd', ['.']],
  ['git clean -n', undefined],
  ['git checkout main', ['main']],
  ['git -C sub checkout f', ['sub/f']],
  ['git checkout', undefined],
  ['unlink a', undefined],
  ['git checkout main -- f', ['.']],
  ['git checkout main f', ['.']],
  ['git checkout -b new main', undefined],
  ['git checkout -f main', ['.']],
  ['git restore --staged f', undefined],
  ['git restore --staged --worktree f', ['.']],
  ['git stash list', undefined],
  ['git stash', ['.']],
  ['git rebase main', ['.']],
  ['git status', undefined],
  ['git', undefined],
  ['bun remove x', []],
  ['bun --cwd web rm x', ['web']],
  ['bun remove.ts x', undefined],
  ['uv pip uninstall x', []],
  ['uv pip install x', undefined],
  ['uv remove x', []],
  ['poetry remove x', []],
  ['cargo remove x', []],
  ['cargo build', undefined],
  ['composer remove a/b', []],
  ['sqlite3 app.db drop table x', ['app.db', 'drop', 'table', 'x']],
  ['echo rm -rf x', undefined],
  ['git clean -d', ['.']],
  ['git checkout -p', ['.']],
  ['git switch -m other', ['.']],
  ['git switch other', undefined],
  ['git branch -D old', ['.']],
  ['git branch --format=x', undefined],
  ['git tag -am fix', undefined],
  ['git gc', undefined],
  ['git gc --prune=now', ['.']],
  ['git reflog expire --all', undefined],
  ['git -C a worktree remove --force b /c', ['a/b', '/c']],
  ['git worktree remove b', undefined],
  ['perl -pi -e s/a/b/ f g', ['f', 'g']],
  ['perl -pe s/a/b/ -i f', ['f']],
  ['perl -Ilib -Mstrict t/x.t', undefined],
  ['perl script.pl -i f', undefined],
  ['perl -e i f', undefined],
  ['perl -ne -i f', undefined],
  ['ruby -i.bak -pe x f', ['f']],
  ['ruby -Ilib test.rb', undefined],
  ['gawk -i inplace x f', ['inplace', 'x', 'f']],
  ['awk -v i=1 x f', undefined],
  ['rsync -a --remove-source-files a b c', ['a', 'b']],
  ['rsync -a --remove-source-files --delete a c', ['a', 'c']],
  ['xargs -r /bin/rm -f', ['/']],
  ['fd -e log . /a -x rm', ['/']],
  ['xargs grep x', undefined],
  ['chmod -R 777 a', ['777', 'a']],
  ['chmod 755 a', undefined],
  ['cp -f a b', undefined],
  ['tee a', undefined],
  ['tar xf a.tar', undefined],
  ['psql -f x.sql', []],
  ['psql -qAtf x.sql', []],
  ['psql shop', undefined],
])('%s destroys %j', (line, operands) => {
  expect(destructiveOf(words(line))?.operands).toEqual(operands)
})

test('the file that is executed counts, whatever it is called by', () => {
  expect(destructiveOf(words('wipe -rf a'), { file: '/usr/bin/rm' })?.operands).toEqual(['a'])
  expect(destructiveOf(words('rm -rf a'), { file: '/bin/busybox' })?.operands).toEqual(['a'])
  expect(destructiveOf(words('cat -rf a'), { file: '/bin/busybox' })).toBeUndefined()
})

test('variables of git name its directories, options name them with more right', () => {
  const gitEnv = { workTree: '/w', gitDirectory: '/r/.git' }
  expect(destructiveOf(words('git reset --hard'), { gitEnv })?.operands).toEqual(['/w', '/r/.git'])
  expect(destructiveOf(words('git --work-tree=/x reset --hard'), { gitEnv })?.operands).toEqual(['/x', '/r/.git'])
})

test.each<[line: string, irreversible: boolean | undefined]>([
  ['git push --force origin main', true],
  ['git push origin +main', true],
  ['git push origin main', undefined],
  ['docker volume rm data', true],
  ['docker --context x volume prune', true],
  ['docker ps', undefined],
  ['mkfs.ext4 /dev/sdz', true],
  ['psql -c drop table users', true],
  ['sqlite3 db select 1', undefined],
  ['apt-get -y remove vim', true],
  ['apt-get -t stable remove vim', true],
  ['apt-get -o a=b -y remove vim', true],
  ['apt --option a=b purge vim', true],
  ['apt-get -t stable install vim', undefined],
  ['dnf --repo x remove vim', true],
  ['wipefs -a /dev/sdz', true],
  ['wipefs -o 0x438 /dev/sdz', true],
  ['mkswap /dev/sdz', true],
  ['mkswap swap.img', false],
  ['blkdiscard /dev/sdz', true],
  ['git push origin :old', true],
  ['git push --mirror', true],
  ['dpkg -r x', true],
  ['dpkg -l', undefined],
  ['rpm -e x', true],
  ['rpm -qa', undefined],
  ['rpm -qe x', undefined],
  ['rpm -ev x', true],
  ['pacman -Rns x', true],
  ['pacman -S x', undefined],
  ['apk del x', true],
  ['apk add x', undefined],
  ['brew uninstall x', true],
  ['yum remove x', true],
  ['docker-compose -f x.yml down -v', true],
  ['docker-compose up', undefined],
  ['dropdb shop', true],
  ['mysqladmin drop shop', true],
  ['mysqladmin status', undefined],
  ['sqlite3 app.db drop table x', false],
  ['rm -rf x', false],
  ['psql -f x.sql', false],
  ['kubectl -n x delete pod y', true],
  ['kubectl get pods', undefined],
  ['terraform destroy -auto-approve', true],
  ['terraform apply -destroy', true],
  ['terraform apply', undefined],
  ['docker rm -fv x', true],
  ['docker run --rm x', undefined],
  ['docker compose up', undefined],
])('%s cannot be brought back: %s', (line, irreversible) => {
  expect(destructiveOf(words(line))?.irreversible).toBe(irreversible)
})

test('a commit, and where', () => {
  expect(commitOf(words('git commit -m x'))).toMatchObject({ directory: '.', gitDirectory: undefined })
  expect(commitOf(words('/usr/bin/git -C a -c b=c commit'), { workTree: '/w', gitDirectory: 'g' })).toMatchObject({
    directory: '/w',
    gitDirectory: 'a/g',
  })
  const none = ['git status', 'git log commit', 'commit', 'git', 'git commit --dry-run']
  expect(none.map(line => commitOf(words(line)))).toEqual(none.map(() => undefined))
})

test('aliases of git are what they mean, also of another alias; those that start a shell are not read', () => {
  const aliases: Record<string, string> = { undo: 'reset --hard', u2: 'undo', sh: '!rm -rf x', loop: 'loop' }
  const destroys = (line: string) => destructiveOf(words(line), { alias: ({ verb }) => aliases[verb] }) !== undefined
  expect(['git undo', 'git u2 HEAD', 'git sh', 'git loop'].map(destroys)).toEqual([true, true, false, false])
})

test.each<[line: string, type: string | undefined]>([
  ['npm run build', 'build'],
  ['npm run build:web', 'build'],
  ['yarn build', 'build'],
  ['make', 'build'],
  ['make -j4', 'build'],
  ['make all', 'build'],
  ['make clean', undefined],
  ['go build ./...', 'build'],
  ['cmake --build out', 'build'],
  ['cmake -S .', undefined],
  ['tsc -p .', 'build'],
  ['node node_modules/.bin/tsc', 'build'],
  ['npm test', 'test'],
  ['npm run test:unit', 'test'],
  ['npm t', 'test'],
  ['node ./node_modules/vitest/vitest.mjs run', 'test'],
  ['python3 -m pytest -q', 'test'],
  ['python3 setup.py', undefined],
  ['cargo +nightly test', undefined],
  ['cargo test', 'test'],
  ['make -C sub test', 'test'],
  ['make -C . all', 'build'],
  ['make -j 4 CC=gcc', 'build'],
  ['make -f other.mk clean', undefined],
  ['npm --prefix web run build', 'build'],
  ['pnpm -C web test', 'test'],
  ['cargo --manifest-path x/Cargo.toml test', 'test'],
  ['go -C sub build ./...', 'build'],
  ['ls', undefined],
  ['make -v', undefined],
  ['make --version', undefined],
  ['make -sn all', undefined],
  ['make -s all', 'build'],
  ['tsc --version', undefined],
  ['pytest --help', undefined],
  ['pytest -v', 'test'],
  ['ninja -v', 'build'],
  ['mvn -q clean package', 'build'],
  ['mvn clean verify', 'test'],
  ['./gradlew clean build', 'build'],
  ['gradle :app:test', 'test'],
  ['npm run-script build', 'build'],
  ['cargo b --release', 'build'],
  ['./mvnw -q package', 'build'],
  ['./mvnw -pl core clean compile', 'build'],
  ['./mvnw test', 'test'],
  ['./mvnw verify', 'test'],
  ['./mvnw clean', undefined],
  ['gmake', 'build'],
  ['gmake -C sub all', 'build'],
  ['gmake check', 'test'],
  ['gmake -n', undefined],
  ['gmake clean', undefined],
  ['yarn workspace web build', 'build'],
  ['yarn workspace web run test:unit', 'test'],
  ['yarn workspace web add build', undefined],
  ['yarn workspaces foreach -A --include web -j 2 run build', 'build'],
  ['yarn workspaces foreach --all test', 'test'],
  ['yarn workspaces run compile', 'build'],
  ['yarn workspaces list', undefined],
  ['bundle exec rspec spec/a_spec.rb', 'test'],
  ['bundle exec rails console', undefined],
  ['./gradlew build', 'build'],
  ['./gradlew -p sub test', 'test'],
])('%s is %s', (line, type) => {
  expect(milestoneOf(words(line), none)).toBe(type)
})

test('patterns of the user', () => {
  expect(milestoneOf(words('just release'), { ...none, buildCommands: ['just rel*'] })).toBe('build')
  expect(milestoneOf(words('make all'), { ...none, testCommands: ['make all'] })).toBe('test')
  expect(matchesCommand(['terraform destroy'], words('/opt/terraform -chdir=x destroy -auto-approve'))).toBe(true)
  expect(matchesCommand(['tool --wipe'], words('tool all --wipe'))).toBe(false)
  expect(matchesCommand(['tool a.c'], words('tool abc'))).toBe(false)
  expect(matchesCommand([''], words('tool'))).toBe(false)
})

test('the program is the script that an interpreter runs', () => {
  const lines = [
    'node x/y.js',
    'python3 /a/b.py',
    'node -e 1',
    '/bin/ls',
    'node',
    'python3 -I -m pip x',
    'busybox rm x',
  ]
  expect(lines.map(line => callOf(words(line)).program)).toEqual(['y', 'b', 'node', 'ls', 'node', 'pip', 'rm'])
  expect(callOf([])).toEqual({ program: '', words: [] })
})

test.each(['psql -c drop table users', 'mysql shop -e truncate x', 'dropdb shop', 'redis-cli flushall'])(
  '%s names no path: it endangers the place where it is called',
  line => expect(destructiveOf(words(line))?.operands).toEqual([]),
)

test('a database that is a file is named', () =>
  expect(destructiveOf(words('sqlite3 app.db drop table x'))?.operands).toContain('app.db'))

test.each<[line: string, fromInput: boolean]>([
  ['sqlite3 app.db', true],
  ['sqlite3 -batch -separator | app.db', true],
  ['sqlite3 app.db .dump', false],
  ['sqlite3 -cmd x app.db', true],
  ['sqlite3', false],
  ['psql -hlocalhost -U postgres shop', true],
  ['psql -qAtc select shop', false],
  ['psql --command=select shop', false],
  ['psql -l', false],
  ['mysql -uroot -pecho shop', true],
  ['mysql -Ne select shop', false],
  ['mongosh --eval 1', false],
  ['mongosh shop', true],
  ['redis-cli -h here -n 1', true],
  ['redis-cli -h here ping', false],
  ['redis-cli --pipe', true],
])('%s takes statements from its standard input: %s', (line, fromInput) => {
  expect(destructiveOf(words(line), { isFed: () => true }) !== undefined).toBe(fromInput)
  expect(destructiveOf(words(line))).toBeUndefined()
})
