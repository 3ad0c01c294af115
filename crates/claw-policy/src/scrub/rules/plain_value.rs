//! Decides whether the value of a secret's key in a line of configuration is a real value, however plain, or
//! stands for none.

use super::{
    key_name::Family,
    value::{
        is_absent, is_dotted_name, is_example, is_filled_in, is_listed, is_made_up, is_number, is_path,
        is_screaming, is_url,
    },
};

/// The context of a value.
pub(super) struct Place {
    /// The key has no lower-case letter.
    pub(super) upper: bool,
    /// `key=value`, without spaces.
    pub(super) tight: bool,
    /// The key consists of several names with dots between them.
    pub(super) dotted: bool,
    pub(super) family: Family,
}

/// The shortest password that is not a variable's name, and the shortest token.
const PASSWORD: usize = 3;
const TOKEN: usize = 6;

/// Names of variables that hold secrets in code.
const VARIABLES: &[&str] = &[
    "pw",
    "pwd",
    "pass",
    "tok",
    "creds",
    "val",
    "hash",
    "hashed",
    "digest",
    "input",
    "raw",
    "data",
    "result",
    "response",
    "res",
    "line",
    "arg",
    "args",
    "param",
    "params",
    "encrypted",
    "encoded",
    "decoded",
    "new",
    "old",
    "other",
    "name",
    "user",
    "plaintext",
    "bytes",
    "buf",
    "buffer",
];
/// Types and states that follow a key.
const DESCRIPTIONS: &[&str] = &[
    "byte",
    "char",
    "varchar",
    "uuid",
    "float",
    "double",
    "long",
    "dict",
    "list",
    "map",
    "void",
    "never",
    "blob",
    "changed",
    "updated",
    "rotated",
    "unchanged",
    "set",
    "ok",
    "failed",
    "denied",
    "accepted",
    "rejected",
    "verified",
    "protected",
    "authentication",
    "login",
    "present",
    "provided",
    "include",
    "omit",
    "same-origin",
    "header",
    "query",
    "cookie",
    "inherit",
    "publickey",
];
/// Endings of types that hold secrets.
const TYPES: &[&str] = &[
    "String",
    "Str",
    "Password",
    "Secret",
    "Token",
    "Key",
    "Credential",
    "Credentials",
    "Type",
    "Bytes",
    "Buffer",
    "Text",
    "Field",
    "Input",
    "Value",
    "Option",
    "Hash",
    "Schema",
    "Provider",
    "Config",
    "Data",
    "Model",
    "Ref",
];
/// Synonyms: a variable that ends with one of them holds the value of a key that ends with another.
const PASSWORD_WORDS: &[&str] = &["password", "passwd", "passphrase", "pass", "pwd", "pw", "hash"];
const OTHER_WORDS: &[&str] = &["secret", "token", "key", "credential", "credentials"];
/// Objects whose fields are set in code.
const OBJECTS: &[&str] = &[
    "self", "this", "cls", "super", "req", "request", "res", "response", "ctx", "context", "state", "props",
    "args", "opts", "options", "params", "user", "account", "instance", "module", "exports", "window",
    "process",
];

/// Returns whether the bare `value` of `key` is a secret.
pub(super) fn is_value(value: &[u8], key: &[u8], place: &Place) -> bool {
    let password = place.family == Family::Password;
    let least = if password { PASSWORD } else { TOKEN };
    // In upper case it is an environment variable, never a variable in code.
    let named =
        !place.upper && (is_listed(value, VARIABLES) || is_made_up(value) || is_named_after(value, key));
    let dotted = is_dotted_name(value) && !(place.tight && (place.upper || place.dotted));
    let number =
        is_number(value) && !(password && value.len() > PASSWORD && value.iter().all(u8::is_ascii_digit));
    value.len() >= least
        && is_any_value(value)
        && !(named || dotted || number)
        && !(is_type(value) || is_screaming(value) || is_code(value))
}

/// Returns whether the quoted `value` of `key` is a secret; a longer password is one in any text.
pub(super) fn is_quoted_value(value: &[u8], key: &[u8], family: Family) -> bool {
    let plain = match family {
        Family::Password => !value.is_empty() && value.len() <= PASSWORD,
        _ => value.len() >= TOKEN && !value.contains(&b' ') && !is_dotted_name(value) && !is_number(value),
    };
    plain && is_any_value(value) && !(is_made_up(value) || is_screaming(value) || is_named_after(value, key))
}

/// Returns whether `value` is a given value, not filled in later, described or kept elsewhere.
pub(in crate::scrub) fn is_any_value(value: &[u8]) -> bool {
    let word = value.strip_suffix(b"!").or(value.strip_suffix(b"?")).unwrap_or(value);
    let path =
        is_path(value) || value.starts_with(b"/") && value.iter().skip(1).all(u8::is_ascii_alphanumeric);
    // `$1`, `$@`: an argument in a shell.
    let argument = matches!(value, [b'$', _]);
    !(argument
        || is_filled_in(value)
        || is_example(value)
        || is_absent(word)
        || is_listed(word, DESCRIPTIONS)
        || path
        || is_url(value))
}

/// Returns whether `key` is a field of an object, as code sets it.
pub(super) fn is_field_of_code(key: &[u8]) -> bool {
    let mut names = key.split(|byte| *byte == b'.');
    names.next().is_some_and(|first| first.len() < key.len() && is_listed(first, OBJECTS))
}

/// Returns whether a value is a variable named after its key: `userPassword`, `db_password2` after
/// `password`.
fn is_named_after(value: &[u8], key: &[u8]) -> bool {
    let value = value.trim_ascii_end_matches(|byte| byte.is_ascii_digit() || *byte == b'_');
    let ends = |text: &[u8], word: &str| {
        text.len().checked_sub(word.len()).filter(|at| text[*at..].eq_ignore_ascii_case(word.as_bytes()))
    };
    let starts_word = |at: usize| {
        let before = at.checked_sub(1).map(|before| value[before]);
        before.is_none_or(|before| {
            before == b'_' || before.is_ascii_lowercase() && value[at].is_ascii_uppercase()
        })
    };
    let holds = |words: &[&str]| words.iter().any(|word| ends(value, word).is_some_and(starts_word));
    let names = |words: &[&str]| words.iter().any(|word| ends(key, word).is_some());
    names(PASSWORD_WORDS) && holds(PASSWORD_WORDS)
        || OTHER_WORDS.iter().any(|word| names(&[word]) && holds(&[word]))
}

/// Returns whether a value is a type: `SecretString`, `Buffer`.
fn is_type(value: &[u8]) -> bool {
    value.first().is_some_and(u8::is_ascii_uppercase)
        && value.iter().all(u8::is_ascii_alphanumeric)
        && TYPES.iter().any(|end| value.ends_with(end.as_bytes()))
}

/// Returns whether a value is code: `f(x)`, `list[0]`, `Key::new`, `a->b`, `value,`, `*alias`, `!tag`.
fn is_code(value: &[u8]) -> bool {
    let has = |part: &[u8]| memchr::memmem::find(value, part).is_some();
    let first = value.first().copied().unwrap_or_default();
    let last = value.last().copied().unwrap_or_default();
    let name = value.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"_.:".contains(byte)).count();
    let called = matches!(value.get(name), Some(b'(' | b'[' | b'{' | b'<')) && b")]}>?(".contains(&last);
    let end = value.strip_suffix(b":").unwrap_or(value);
    let closes = end.ends_with(b")") && !value.contains(&b'(');
    let is_operator = value.iter().all(|byte| byte.is_ascii_punctuation());
    called
        || closes
        || is_operator
        || b",;{(".contains(&last)
        || b"*&!@%|>[{(<=:".contains(&first)
        || has(b"::")
        || has(b"->")
        || has(b"=>")
        || has(b"&&")
        || has(b"||")
}

trait TrimEnd {
    fn trim_ascii_end_matches(&self, is: impl Fn(&u8) -> bool) -> &Self;
}

impl TrimEnd for [u8] {
    fn trim_ascii_end_matches(&self, is: impl Fn(&u8) -> bool) -> &Self {
        let length = self.iter().rposition(|byte| !is(byte)).map_or(0, |last| last + 1);
        &self[..length]
    }
}
