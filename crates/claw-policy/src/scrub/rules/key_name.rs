//! Classifies the key of a value: `DB_PASSWORD`, `apiKey`, `max_tokens`, `primary_key`, ...
//!
//! The last word decides, after trailing numbers and words such as `value` or `prod`: `token_count` names a
//! count, `password_file` a path, `monkey` an animal.

/// The longest key that is considered.
pub(super) const LONGEST: usize = 96;

/// The family of a secret's key; decides how carefully the value is examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// `password`, `secret`: people choose these, so a value may look like anything.
    Password,
    /// `token`, `api_key`, `credential`: machines make these.
    Token,
    /// `authorization`: the value begins with a scheme.
    Authorization,
    /// `KEY`, `DSN`, `PRIVATE`: secret only as an environment variable.
    Variable,
    /// `VIRTUAL_*`: the deployment's own environment, secret whatever the value.
    Virtual,
}

const PASSWORD: &[&str] = &["password", "passwd", "passphrase", "pwd", "secret"];
/// Settings of Redis, which have no sign before their value.
const DIRECTIVES: &[&str] = &["requirepass", "masterauth"];
/// Endings of words written together: `dbpassword`, `xapikey`.
const TOGETHER_PASSWORD: &[&str] = &["password", "passwd", "passphrase", "clientsecret"];
const TOGETHER_TOKEN: &[&str] = &[
    "apikey",
    "authtoken",
    "accesstoken",
    "refreshtoken",
    "bottoken",
    "accesskey",
    "secretkey",
    "privatekey",
    "accountkey",
];
/// Words before `key` in the name of a secret.
const KEY_OWNERS: &[&str] = &[
    "api",
    "access",
    "secret",
    "private",
    "auth",
    "encryption",
    "signing",
    "master",
    "service",
    "account",
    "license",
    "aes",
    "hmac",
    "jwt",
    "storage",
    "admin",
    "deploy",
    "consumer",
    "webhook",
    "subscription",
    "crypt",
    "cipher",
    "rsa",
    "ssh",
    "root",
    "session",
    "symmetric",
];
/// Words before `pass`, `token` and `key` with which they name only secrets.
const PASS_OWNERS: &[&str] = &[
    "db", "database", "smtp", "mail", "email", "imap", "user", "mysql", "postgres", "pg", "root", "admin",
    "ftp", "sftp", "ssh", "proxy", "redis", "http", "auth", "login", "key", "store", "api", "app", "mongo",
    "rabbitmq", "mqtt", "ldap", "bind", "vpn", "wifi", "rpc",
];
const TOKEN_OWNERS: &[&str] = &[
    "access", "auth", "refresh", "bot", "api", "bearer", "session", "secret", "github", "gitlab", "slack",
    "npm", "vault", "deploy", "user", "service", "root", "admin", "personal", "registry", "telegram",
    "discord", "hf", "web", "app", "private",
];
const PLAIN_KEY_OWNERS: &[&str] = &[
    "api",
    "secret",
    "access",
    "private",
    "auth",
    "encryption",
    "signing",
    "master",
    "aes",
    "hmac",
    "jwt",
    "license",
    "consumer",
    "webhook",
    "cipher",
    "symmetric",
];
/// Words before `key` in the name of something public.
const KEY_OF_DATA: &[&str] = &[
    "primary",
    "foreign",
    "public",
    "sort",
    "partition",
    "cache",
    "unique",
    "index",
    "row",
    "group",
    "lookup",
    "idempotency",
    "route",
    "routing",
    "object",
    "s3",
    "composite",
    "hash",
    "range",
    "shard",
    "map",
    "dict",
    "query",
    "registry",
    "translation",
    "i18n",
    "storage",
    "host",
    "hot",
    "config",
    "lock",
    "redis",
    "event",
    "message",
    "partial",
];
/// Words before `token` in the name of something that is not a credential.
const TOKEN_OF_DATA: &[&str] = &[
    "next",
    "page",
    "prev",
    "previous",
    "continuation",
    "max",
    "min",
    "num",
    "total",
    "stop",
    "end",
    "start",
    "pad",
    "eos",
    "bos",
    "mask",
    "unk",
    "sep",
    "cls",
    "special",
    "current",
    "last",
    "first",
    "peek",
    "cursor",
    "sync",
    "design",
    "theme",
    "color",
    "lookahead",
];
/// Words that may follow without changing the meaning.
const TRAILING: &[&str] = &[
    "value",
    "base",
    "prod",
    "production",
    "dev",
    "staging",
    "test",
    "live",
    "old",
    "new",
    "default",
    "raw",
    "plain",
    "b64",
    "base64",
    "string",
    "str",
];

/// The family of `key`; `None` if it names no secret. `upper`: it has no lower-case letter.
pub(super) fn family(key: &[u8], upper: bool) -> Option<Family> {
    let mut lower = [0_u8; LONGEST];
    let lower = lowered(key, &mut lower)?;
    let (last, before) = deciding(key, lower)?;
    let is = |list: &[&str], word: &[u8]| list.iter().any(|known| word == known.as_bytes());
    let ends = |list: &[&str]| list.iter().any(|known| last.ends_with(known.as_bytes()));
    match last {
        _ if lower.starts_with(b"virtual_") && upper => {
            (!lower.starts_with(b"virtual_env")).then_some(Family::Virtual)
        }
        _ if is(PASSWORD, last) || is(DIRECTIVES, last) || ends(TOGETHER_PASSWORD) => Some(Family::Password),
        b"pass" if upper || !before.is_empty() => Some(Family::Password),
        // In TLS and in C headers it is one of many names.
        b"psk" if before.is_empty() || !upper && is(&["wpa", "wifi", "wlan"], before) => {
            Some(Family::Password)
        }
        b"token" if is(TOKEN_OF_DATA, before) => None,
        b"token" | b"credential" | b"credentials" | b"bearer" => Some(Family::Token),
        b"authorization" => Some(Family::Authorization),
        // In our own calls and results this names a session; as a variable it is a secret for cookies.
        b"key" if before == b"session" && !upper => None,
        b"key" if is(KEY_OWNERS, before) => Some(Family::Token),
        b"key" if upper && !is(KEY_OF_DATA, before) => Some(Family::Variable),
        b"dsn" | b"private" if upper => Some(Family::Variable),
        _ if ends(TOGETHER_TOKEN) => Some(Family::Token),
        _ => None,
    }
}

/// The family of `key` in a configuration file, where `pass` alone names a password.
pub(super) fn family_in_settings(key: &[u8], upper: bool) -> Option<Family> {
    let as_variable = || family(key, true).filter(|family| *family == Family::Password);
    family(key, upper).or_else(as_variable)
}

/// Returns whether `key` is a directive with a secret after it.
pub(super) fn is_directive(key: &[u8]) -> bool {
    DIRECTIVES.iter().any(|known| key.eq_ignore_ascii_case(known.as_bytes()))
}

/// Returns whether any word after `key` of `family` in a line of configuration is its value. Not so for
/// `token`, `credentials` and `render_pass`, which have too many other meanings.
pub(super) fn takes_any_word(key: &[u8], family: Family, upper: bool) -> bool {
    // The most frequent key in code.
    if key == b"token" {
        return false;
    }
    let mut lower = [0_u8; LONGEST];
    let words = lowered(key, &mut lower).and_then(|lower| deciding(key, lower));
    let Some((last, before)) = words else { return false };
    let is_owner = |owners: &[&str]| owners.iter().any(|owner| before == owner.as_bytes());
    match (family, last) {
        (Family::Password, b"pass") => upper || is_owner(PASS_OWNERS),
        (Family::Password, _) => true,
        (Family::Token, b"token") => upper || is_owner(TOKEN_OWNERS),
        (Family::Token, b"key") => upper || is_owner(PLAIN_KEY_OWNERS),
        (Family::Token, b"credential" | b"credentials" | b"bearer") => false,
        (Family::Token, _) => true,
        _ => false,
    }
}

/// `key` in lower case; `None` if it is too long.
fn lowered<'b>(key: &[u8], buffer: &'b mut [u8; LONGEST]) -> Option<&'b [u8]> {
    let lower = buffer.get_mut(..key.len())?;
    lower.copy_from_slice(key);
    lower.make_ascii_lowercase();
    Some(lower)
}

/// The word of `key` that decides its meaning, and the word before it.
fn deciding<'k>(key: &'k [u8], lower: &'k [u8]) -> Option<(&'k [u8], &'k [u8])> {
    let mut words = Words::new(key, lower);
    let mut last = words.next_back()?;
    while TRAILING.iter().any(|word| last == word.as_bytes()) || last.iter().all(u8::is_ascii_digit) {
        last = words.next_back()?;
    }
    Some((last.trim_ascii_end_digits(), words.next_back().unwrap_or_default()))
}

/// The words of a key, split at signs and in camel case.
struct Words<'k> {
    key: &'k [u8],
    lower: &'k [u8],
}

impl<'k> Words<'k> {
    fn new(key: &'k [u8], lower: &'k [u8]) -> Self {
        Self { key, lower }
    }

    fn next_back(&mut self) -> Option<&'k [u8]> {
        let mut end = self.key.len();
        while end > 0 && !self.key[end - 1].is_ascii_alphanumeric() {
            end -= 1;
        }
        let mut start = end;
        while start > 0 && self.key[start - 1].is_ascii_alphanumeric() {
            start -= 1;
            if start > 0 && starts_hump(&self.key[..end], start) {
                break;
            }
        }
        let word = self.lower.get(start..end).filter(|word| !word.is_empty())?;
        self.key = &self.key[..start];
        self.lower = &self.lower[..start];
        Some(word)
    }
}

/// Returns whether a word of camel case starts at `at`: `api|Key`, `API|Key`.
fn starts_hump(key: &[u8], at: usize) -> bool {
    let upper = |i: usize| key.get(i).is_some_and(u8::is_ascii_uppercase);
    let lower = |i: usize| key.get(i).is_some_and(u8::is_ascii_lowercase);
    upper(at) && (lower(at - 1) || (upper(at - 1) && lower(at + 1)))
}

trait TrimDigits {
    fn trim_ascii_end_digits(&self) -> &Self;
}

impl TrimDigits for [u8] {
    fn trim_ascii_end_digits(&self) -> &Self {
        let mut word = self;
        while let [rest @ .., last] = word
            && last.is_ascii_digit()
        {
            word = rest;
        }
        word
    }
}
