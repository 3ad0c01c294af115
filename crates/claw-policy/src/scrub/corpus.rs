//! Test texts: fragments of secrets, and logs and code as tools print them.

use proptest::prelude::*;

/// Fragments of secrets and of texts that look like them.
const FRAGMENTS: &[&str] = &[
    "\n--- a/.env\n+++ /dev/null\n",
    "\n--- /dev/null\n+++ b/app.toml\n",
    "\n--- a/main.rs\n+++ b/main.rs\n",
    "\n==> my.cnf <==\n",
    "\n==> main.rs <==\n",
    "\n./.env:",
    "\nHEAD:.env:12:",
    "\nconf/app.yml-7-",
    "\n^1a2b3c4d (Ann 2024-05-01 10:00:00 +0000 12) ",
    "+password = swordfish\n",
    "\"\"\"",
    "'''",
    "\\\n",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "ghp_",
    "github_pat_",
    "sk-",
    "sk-ant-",
    "sk-proj-",
    "glpat-",
    "xoxb-",
    "xoxe.xox",
    "sk_live_",
    "whsec_",
    "AIza",
    "ya29.",
    "GOCSPX-",
    "npm_",
    "hf_",
    "gsk_",
    "SG.",
    "hvs.",
    "pypi-",
    "xai-",
    "claw_",
    "AKIA",
    "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9",
    "eyJ",
    "123456789:",
    "123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew110",
    "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0",
    "abcdefghijklmnop",
    "ABCDEFGHIJKLMNOP",
    "0123456789abcdef",
    "a1B2c3D4e5F6g7H8",
    "00112233445566778899aabbccddeeff",
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "sha256:",
    "digest: ",
    "commit ",
    "  file",
    " *file",
    "MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF8PbnGy0AHB7MaVYqmJ1dXCaGZ7x",
    "Jq0c8WQm1hWgkGcPIrZf4bC2J1bFqB3e5c8q2Zs1VbRk8m0b9vN7dJkq3n2Yl0Pj",
    "tokenQm1hWgkGcPIrZf4bC2J1bFqB3e5c8q2Zs1VbRk8m0b9vN7dJkq3n2Yl0Pj0x",
    "Yw2eR5t8yU1iO4pA7s==",
    "aBc1",
    "-----BEGIN RSA PRIVATE KEY-----",
    "-----END RSA PRIVATE KEY-----",
    "-----BEGIN CERTIFICATE-----",
    "-----END CERTIFICATE-----",
    "-----BEGIN ",
    "-----END ",
    "PRIVATE KEY-----",
    "Proc-Type: 4,ENCRYPTED",
    "\\n",
    "\\r\\n",
    "\r\n",
    "  12\t",
    "+",
    "> ",
    "password",
    "PASSWORD",
    "secret",
    "token",
    "api_key",
    "apiKey",
    "API_KEY",
    "KEY",
    "DSN",
    "VIRTUAL_HOST",
    "credential",
    "db_pass",
    "db.password",
    "requirepass ",
    "masterauth ",
    "psk",
    "login bob password ",
    "self.",
    "export ",
    "swordfish",
    "letmein;",
    ":5432:",
    "db:5432:app:bob:",
    "define('",
    "[client]\n",
    "user = bob\n",
    "user=bob ",
    "host=db;",
    "|",
    "|-\n",
    "password: |\n  ",
    "secret: >\r\n    ",
    "\n    ",
    "Authorization",
    "Bearer",
    "Basic",
    "bearer ",
    "max_tokens",
    "PRIMARY_KEY",
    "monkey",
    "--",
    "_",
    "-",
    ".",
    "=",
    ":",
    ": ",
    " = ",
    ":=",
    "=>",
    "==",
    "::",
    "\"",
    "'",
    "\\\"",
    "`",
    ",",
    ";",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    "&",
    "|",
    "$",
    "${",
    "%s",
    "@",
    "/",
    "://",
    "postgres://user:",
    "pass@host/db",
    "hunter2",
    "hunter2hunter2",
    "P@ssw0rd!",
    "correct horse battery staple",
    "abcd1234efgh5678",
    "dXNlcjpwYXNz",
    "required",
    "None",
    "string",
    "your-token",
    "xxxxxxxx",
    "lexer.next",
    "process.env.X",
    "[REDACTED]",
    "[REDAC",
    "TED]",
    "REDACTED",
    "[",
    " ",
    "  ",
    "\t",
    "\n",
    "\n",
    "\n",
    "\r",
    "é",
    "→",
    "日本",
    "the ",
    "word ",
    "x",
    "0",
    "A",
    "corr3ct-horse",
    "Y29ycjNjdC1ob3JzZQ",
    "corr3ct",
    "-horse",
    "10.20.30.40",
    "horse[RED",
    "aabbccdd",
];

const KEYS: &[&str] = &[
    "password",
    "\"password\"",
    "\\\"secret\\\"",
    "DB_PASSWORD",
    "token",
    "API_KEY",
    "KEY",
    "Authorization",
    "--token",
    "let secret: &str",
    "\npassword",
    "\n  db.password",
    "\n12\tPOSTGRES_PASSWORD",
    "\na/b.env:3:api_key",
    "\n[a]\n  secret",
    "x=1 password",
    "sha256",
    "digest",
    "https",
    "VIRTUAL_HOST",
    "DSN",
    "Bearer",
];
const SIGNS: &[&str] = &[
    "=",
    ": ",
    ":",
    " = ",
    ": \"",
    "=\"",
    ":\\\"",
    ": Bearer ",
    ": Basic ",
    "=> '",
    " ",
    "://user:",
    "://a:b@c@",
    ": '",
];
const VALUES: &[&str] = &[
    "swordfish",
    "swordfish\n",
    "letmein # x\n",
    "letmein user=x",
    "abc;b=c\n",
    "x7(Kq]9{w\n",
    "|\n  one\n  two\nthree",
    ">-\n\n    one\n",
    "password\n",
    "hunter2",
    "abcd1234efgh5678",
    "abcd1234efgh5678\"",
    "correct horse battery staple\"",
    "${X}",
    "[REDACTED]",
    "[REDACTED]\"",
    "pass@host/",
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789\"",
    "Enter your corr3ct-horse\"",
    "lexer.next()",
    "dXNlcjpwYXNz",
    "a\\\"b\\\\\"",
    "x\\\"",
];
const PREFIXES: &[&str] = &["", "", "", "  ", "  12\t", "7: ", "+", "> ", "\"", "k.pem-", "[REDACTED]"];
const LINES: &[&str] = &[
    "MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF8PbnGy0AHB7MaVYqmJ1dXCaGZ7x",
    "Jq0c8WQm1hWgkGcPIrZf4bC2J1bFqB3e5c8q2Zs1VbRk8m0b9vN7dJkq3n2Yl0Pj",
    "keyc8WQm1hWgkGcPIrZf4bC2J1bFqB3e5c8q2Zs1VbRk8m0b9vN7dJkq3n2Yl0Pj",
    "Yw2eR5t8yU1iO4pA7s==",
    "aBc1dEf2",
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "-----BEGIN RSA PRIVATE KEY-----",
    "-----END RSA PRIVATE KEY-----",
    "-----BEGIN CERTIFICATE-----",
    "-----END CERTIFICATE-----",
    "DEK-Info: AES-128-CBC,0A1B2C",
    "word",
    "",
];
const BREAKS: &[&str] = &["\n", "\n", "\n", "\n", "\r\n", "\\n", "\\n\" +\n", "\"\n", " ", ""];

/// Settings with `{}` for the value, each on a line of its own.
pub(super) fn settings() -> impl Strategy<Value = String> {
    let places =
        ["", "export ", "# ", "    12\t", "7:", "a/b.conf:", "a/b.conf:12:", "+", "\u{20}\u{20}- ", "ENV "];
    let keys =
        ["password", "db_password", "DB_PASSWORD", "app.db.password", "clientSecret", "api_key", "psk"];
    let one = prop::sample::select;
    let signs = ["={}", "={} ", "={} # note", "=\"{}\""];
    let line = (one(places.to_vec()), one(keys.to_vec()), one(signs.to_vec()))
        .prop_map(|(place, key, sign)| format!("\n{place}{key}{sign}\n"));
    let spaced = [
        "\npassword = {}\n",
        "\ndb.password = {}\n",
        "\n    POSTGRES_PASSWORD: {}\n",
        "\n  password: {}\n",
        "\nx=1 password={} y=2\n",
        "\nrequirepass {}\n",
        "\nlogin bob\npassword {}\n",
        "\n[a]\n\tuser = bob\n\tsecret = {}\n",
        "\n  password: |\n    {}\n  user: x\n",
    ];
    prop_oneof![line, one(spaced.to_vec()).prop_map(str::to_owned)]
}

/// Picks one of each and joins them.
fn pick(
    first: &'static [&'static str],
    second: &'static [&'static str],
    third: &'static [&'static str],
) -> impl Strategy<Value = Vec<u8>> {
    let one = prop::sample::select;
    (one(first), one(second), one(third)).prop_map(|(a, b, c)| [a, b, c].concat().into_bytes())
}

/// Texts of fragments, with some noise.
pub(super) fn texts() -> impl Strategy<Value = Vec<u8>> {
    let fragment = prop_oneof![
        12 => prop::sample::select(FRAGMENTS).prop_map(|fragment| fragment.as_bytes().to_vec()),
        3 => pick(KEYS, SIGNS, VALUES),
        4 => pick(PREFIXES, LINES, BREAKS),
        1 => "[A-Za-z0-9+/]{1,80}".prop_map(String::into_bytes),
        1 => "[ -~]{1,20}".prop_map(String::into_bytes),
        1 => prop::sample::select(FRAGMENTS).prop_flat_map(|fragment| {
            let bytes = fragment.as_bytes();
            (0..=bytes.len(), 0..=bytes.len())
                .prop_map(move |(a, b)| bytes[a.min(b)..a.max(b)].to_vec())
        }),
    ];
    prop::collection::vec(fragment, 0..40).prop_map(|fragments| fragments.concat())
}

/// Texts of fragments and raw bytes.
pub(super) fn raw_texts() -> impl Strategy<Value = Vec<u8>> {
    (texts(), prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8)).prop_map(
        |(mut text, noise)| {
            for (index, byte) in noise {
                if !text.is_empty() {
                    let at = index.index(text.len());
                    text[at] = byte;
                }
            }
            text
        },
    )
}

/// Logs and code with a secret now and then.
pub(super) fn realistic(size: usize, mut seed: u64) -> String {
    const LINES: &[&str] = &[
        "2024-05-01T12:34:56.123456Z  INFO http: request method=GET path=/api/v1/items/42 status=200 latency=12ms",
        "2024-05-01T12:34:57.000001Z  WARN pool: connection to postgres://db.internal:5432/app was slow",
        "2024-05-01T12:34:58.000001Z ERROR auth: token expired for user 550e8400-e29b-41d4-a716-446655440000",
        "    let token = lexer.next().ok_or(Error::UnexpectedEnd)?;",
        "    pub fn key(&self) -> &Key { &self.primary_key }",
        "const apiKey = process.env.API_KEY;",
        "  if (password === undefined) { throw new Error('password: required'); }",
        "commit da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "See https://example.org/docs/tokens#max_tokens for the default of max_tokens: 4096.",
        "def connect(host, user, password=None, *, api_key=DEFAULT_KEY, secret: str = \"\"):",
        "password=hunter2hunter2",
        "Authorization: Bearer abcd1234efgh5678",
        "export API_KEY=abcd1234efgh5678 # corr3ct-horse",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF8PbnGy0AHB7MaVYqmJ1dXCaGZ7x\n-----END RSA PRIVATE KEY-----",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    ];
    let mut text = String::with_capacity(size + 200);
    while text.len() < size {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        text.push_str(LINES[(seed >> 33) as usize % LINES.len()]);
        text.push('\n');
    }
    text
}
