/**
 * What a command line may carry that must not be written down. A pattern matches the secret alone (what leads up to it
 * stands in a look-behind), so that the trace still shows which option or host it belonged to. They are matched against
 * the arguments joined by spaces, without regard to case; too much redacted is better than too little. Look-behinds are
 * bounded: they are tried at every character, and a command line can be long.
 */
export const defaultRedact: readonly string[] = [
  // Authorization: Bearer abc, "token abc", Basic dXNlcjpwYXNz
  String.raw`(?<=\b(?:bearer|basic|authorization:\s{0,4}token)\s{1,4})[\w.~+/=-]{6,}`,
  String.raw`(?<=\b(?:x-api-key|api-key|private-token|x-auth-token|x-vault-token)\s{0,4}:\s{0,4})[^\s"']+`,
  // --password=x, --db-password x, --token x, --api-key=x, --client-secret x; quoted values as a whole
  String.raw`(?<=(?:^|\s)--?(?:[\w-]{0,40}[-_])?(?:password|passwd|passphrase|pass|pwd|token|secret|api-?key|apikey|access-?key|secret-?key|private-?key|auth|credentials?)(?:=|\s{1,4}))(?!-)(?:"[^"]*"|'[^']*'|\S+)`,
  // PGPASSWORD=x, GITHUB_TOKEN=x, AWS_SECRET_ACCESS_KEY=x, "password": "x"
  String.raw`(?<=(?:password|passwd|passphrase|token|secret|api_?key|access_?key|secret_?key|private_?key)["']?\s{0,4}[=:]\s{0,4})(?:"[^"]*"|'[^']*'|["']?[^\s"'&;,]+)`,
  // curl -u user:password
  String.raw`(?<=(?:^|\s)(?:-u|--user|--proxy-user)(?:\s{1,4}|=)[^\s:]{1,100}:)(?!//)\S+`,
  // mysql -pPassword
  String.raw`(?<=\b(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump)\b[^|;&]{0,200}\s-p)[^\s-]\S*`,
  // scheme://user:password@host and scheme://token@host
  String.raw`(?<=\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@]{0,100}:)[^\s/@]+(?=@)`,
  String.raw`(?<=\bhttps?://)[^\s/:@]{16,}(?=@)`,
  // AWS access key ids; Google API keys and OAuth tokens
  String.raw`\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}\b`,
  String.raw`\bAIza[\w-]{35}`,
  String.raw`\bya29\.[\w-]{20,}`,
  // GitHub, GitLab, Slack, npm, PyPI, Hugging Face, Docker, DigitalOcean
  String.raw`\bgh[pousr]_[A-Za-z0-9]{20,}`,
  String.raw`\bgithub_pat_\w{20,}`,
  String.raw`\bglpat-[\w-]{16,}`,
  String.raw`\bxox[abeprs]-[\w-]{10,}`,
  String.raw`\b(?:npm_|hf_|dckr_pat_|dop_v1_)[\w-]{20,}`,
  String.raw`\bpypi-[\w-]{20,}`,
  // OpenAI, Anthropic, OpenRouter (sk-…), Stripe (sk_live_…, rk_test_…)
  String.raw`\bsk-[\w-]{16,}`,
  String.raw`\b(?:sk|rk|whsec)_(?:live_|test_)?[A-Za-z0-9]{16,}`,
  // JSON web tokens
  String.raw`\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*`,
  // Private keys in PEM
  String.raw`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`,
]
