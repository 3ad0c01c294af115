//! The rules for secrets: one file per family, and one table of the literals that can start one.
//!
//! A rule is tried at one position and decides from a bounded look around it. It does not depend on how the
//! position was found: the prefilter is only for speed.

mod config_file;
mod config_line;
mod file_heading;
mod hex;
mod jwt;
mod key_name;
mod key_value;
mod pem;
mod pem_line;
mod plain_value;
mod printed_line;
mod tail;
mod token_prefix;
mod url;
mod value;

use super::view::{Settings, View};

pub(super) use pem::held_line_start;
#[cfg(test)]
pub(super) use plain_value::is_any_value;
pub(super) use tail::Tail;
#[cfg(test)]
pub(super) use value::is_variable;

/// A secret found by a rule.
#[derive(Debug)]
pub(super) struct Secret {
    pub(super) start: usize,
    /// The end of the part that the rule examined; `tail` continues from here.
    pub(super) end: usize,
    pub(super) tail: Tail,
    pub(super) kind: &'static str,
}

/// The kinds of secrets.
pub(super) mod kind {
    pub(crate) const OPENAI: &str = "openai-key";
    pub(crate) const ANTHROPIC: &str = "anthropic-key";
    pub(crate) const GITHUB: &str = "github-token";
    pub(crate) const GITLAB: &str = "gitlab-token";
    pub(crate) const SLACK: &str = "slack-token";
    pub(crate) const STRIPE: &str = "stripe-key";
    pub(crate) const GOOGLE: &str = "google-key";
    pub(crate) const NPM: &str = "npm-token";
    pub(crate) const SERVICE: &str = "service-token";
    pub(crate) const CLAWSMITH: &str = "clawsmith-key";
    pub(crate) const AWS: &str = "aws-key";
    pub(crate) const TELEGRAM: &str = "telegram-token";
    pub(crate) const JWT: &str = "jwt";
    pub(crate) const PEM: &str = "pem-private-key";
    pub(crate) const URL: &str = "url-password";
    pub(crate) const AUTHORIZATION: &str = "authorization";
    pub(crate) const PAIR: &str = "key-value";
    pub(crate) const ENV: &str = "env-var";
    pub(crate) const HEX: &str = "long-hex";
}

/// Every kind of a static rule with its description, for reports and docs.
pub(super) const KINDS: &[(&str, &str)] = &[
    (kind::OPENAI, "`sk-`, `sk-proj-` and alike"),
    (kind::ANTHROPIC, "`sk-ant-`"),
    (kind::GITHUB, "`ghp_`, `gho_`, `ghu_`, `ghs_`, `ghr_`, `github_pat_`"),
    (kind::GITLAB, "`glpat-`, `gldt-`, `glrt-`, `glptt-`, `glcbt-`, `glsoat-`"),
    (kind::SLACK, "`xox?-`, `xapp-`"),
    (kind::STRIPE, "`sk_live_`, `sk_test_`, `rk_live_`, `rk_test_`, `whsec_`"),
    (kind::GOOGLE, "`AIza`, `ya29.`, `GOCSPX-`"),
    (kind::NPM, "`npm_`"),
    (
        kind::SERVICE,
        "Hugging Face, Groq, xAI, Perplexity, NVIDIA, Replicate, SendGrid, Vault, PyPI, Docker, DigitalOcean, \
         Shopify, Linear, Tailscale",
    ),
    (kind::CLAWSMITH, "`claw_`"),
    (kind::AWS, "`AKIA`, `ASIA`"),
    (kind::TELEGRAM, "a Telegram bot token"),
    (kind::JWT, "a JSON web token"),
    (kind::PEM, "a PEM private key or a part of one"),
    (kind::URL, "the password in a URL"),
    (kind::AUTHORIZATION, "credentials of an `Authorization` header, or after `Bearer`"),
    (kind::PAIR, "the value of a key that names a secret"),
    (kind::ENV, "the value of an environment variable that names a secret"),
    (kind::HEX, "64 or more hex digits that are not a digest"),
];

/// A rule that a literal can start.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    Prefixed(usize),
    Sk,
    Slack,
    Aws,
    Jwt,
    Url,
    PemBegin,
    PemEnd,
    /// A key word of this length.
    Pair(usize),
    /// The port of a line of `.pgpass`, with its colons.
    Pgpass,
    /// A line that names the file of the text below it.
    Heading,
}

/// The port of PostgreSQL in a line of `.pgpass`.
const PGPASS: &str = ":5432:";

/// The literals in lower case, none a prefix of another, each with its rule.
pub(super) fn literals() -> Vec<(String, Rule)> {
    const WORDS: &[&str] = &[
        "token",
        "secret",
        "pass",
        "pwd",
        "key",
        "authorization",
        "bearer",
        "credential",
        "dsn=",
        "virtual_",
        "private=",
    ];
    const OTHERS: &[(&str, Rule)] = &[
        ("sk-", Rule::Sk),
        ("xox", Rule::Slack),
        ("akia", Rule::Aws),
        ("asia", Rule::Aws),
        ("eyj", Rule::Jwt),
        ("://", Rule::Url),
        ("-----begin ", Rule::PemBegin),
        ("-----end ", Rule::PemEnd),
        (PGPASS, Rule::Pgpass),
        ("psk=", Rule::Pair(3)),
        ("masterauth", Rule::Pair(10)),
        (file_heading::DIFF, Rule::Heading),
        (file_heading::HEAD, Rule::Heading),
    ];
    let prefixed = token_prefix::FORMS.iter().enumerate();
    prefixed
        .map(|(i, form)| (form.prefix.to_ascii_lowercase(), Rule::Prefixed(i)))
        .chain(OTHERS.iter().map(|&(literal, rule)| (literal.to_owned(), rule)))
        .chain(WORDS.iter().map(|word| ((*word).to_owned(), Rule::Pair(word.trim_end_matches('=').len()))))
        .collect()
}

impl Rule {
    /// The secret that starts with this rule's literal at `at`, if any.
    pub(super) fn judge(self, view: &View<'_>, at: usize) -> Option<Secret> {
        match self {
            Self::Prefixed(form) => token_prefix::form_at(view, at, token_prefix::FORMS.get(form)?),
            Self::Sk => token_prefix::sk(view, at),
            Self::Slack => token_prefix::slack(view, at),
            Self::Aws => token_prefix::aws(view, at),
            Self::Jwt => jwt::token(view, at),
            Self::Url => url::password(view, at),
            Self::PemBegin => pem::begin(view, at),
            Self::PemEnd => pem::end(view, at),
            Self::Pgpass => config_line::pgpass(view, at, PGPASS.len()),
            Self::Pair(word) => key_value::pair(view, at, word),
            Self::Heading => None,
        }
    }

    /// The kind of the text below the heading at `at`, if it is one.
    pub(super) fn heading(self, view: &View<'_>, at: usize) -> Option<Settings> {
        matches!(self, Self::Heading).then(|| file_heading::below(view, at)).flatten()
    }
}

/// Returns whether the word after `word`, separated by a single space, may be a secret; `before` is the text
/// before it on the line.
pub(super) fn takes_next_word(word: &[u8], before: &[u8]) -> bool {
    let netrc = before.is_empty() || memchr::memmem::find(before, b"login ").is_some();
    word == b"password" && netrc || key_name::is_directive(word)
}

/// The secret that a long run without spaces starts at `at`, if it does. These have no literal.
pub(super) fn judge_run(view: &View<'_>, at: usize) -> Option<Secret> {
    hex::long(view, at).or_else(|| token_prefix::telegram(view, at)).or_else(|| pem::cut(view, at))
}
