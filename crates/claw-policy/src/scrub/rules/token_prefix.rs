//! Tokens that name their issuer: `ghp_`, `sk-ant-`, `AKIA`, `glpat-`, ...
//!
//! A prefix alone is not enough: it must start a word, and enough token characters must follow. A run of `x`
//! (`ghp_xxxx...`) is documentation and stays.

use super::{Secret, Tail, kind};
use crate::scrub::view::{
    ALNUM, ALNUM_DASH, BASE64_PAD, BASE64_URL, BASE64_URL_DOT, Class, DIGIT, UPPER_DIGIT, View, WORD,
};

/// The form of one issuer's tokens: the prefix as issued, then the body.
pub(super) struct Prefixed {
    pub(super) prefix: &'static str,
    body: Body,
}

/// A run of at least `least` bytes of `class`.
struct Body {
    least: usize,
    class: &'static Class,
    kind: &'static str,
}

const fn form(prefix: &'static str, least: usize, class: &'static Class, kind: &'static str) -> Prefixed {
    Prefixed { prefix, body: body(least, class, kind) }
}

const fn body(least: usize, class: &'static Class, kind: &'static str) -> Body {
    Body { least, class, kind }
}

/// The forms without a maximum length. Each prefix is a prefilter literal.
pub(super) static FORMS: &[Prefixed] = &[
    form("ghp_", 36, &ALNUM, kind::GITHUB),
    form("gho_", 36, &ALNUM, kind::GITHUB),
    form("ghu_", 36, &ALNUM, kind::GITHUB),
    form("ghs_", 36, &ALNUM, kind::GITHUB),
    form("ghr_", 36, &ALNUM, kind::GITHUB),
    form("github_pat_", 36, &WORD, kind::GITHUB),
    form("glpat-", 20, &BASE64_URL, kind::GITLAB),
    form("gldt-", 20, &BASE64_URL, kind::GITLAB),
    form("glrt-", 20, &BASE64_URL, kind::GITLAB),
    form("glptt-", 20, &BASE64_URL, kind::GITLAB),
    form("glcbt-", 20, &BASE64_URL, kind::GITLAB),
    form("glsoat-", 20, &BASE64_URL, kind::GITLAB),
    form("xapp-", 20, &ALNUM_DASH, kind::SLACK),
    form("sk_live_", 16, &ALNUM, kind::STRIPE),
    form("sk_test_", 16, &ALNUM, kind::STRIPE),
    form("rk_live_", 16, &ALNUM, kind::STRIPE),
    form("rk_test_", 16, &ALNUM, kind::STRIPE),
    form("whsec_", 20, &BASE64_PAD, kind::STRIPE),
    form("AIza", 35, &BASE64_URL, kind::GOOGLE),
    form("ya29.", 20, &BASE64_URL_DOT, kind::GOOGLE),
    form("GOCSPX-", 20, &BASE64_URL, kind::GOOGLE),
    form("npm_", 36, &ALNUM, kind::NPM),
    form("hf_", 30, &ALNUM, kind::SERVICE),
    form("gsk_", 40, &ALNUM, kind::SERVICE),
    form("xai-", 40, &ALNUM, kind::SERVICE),
    form("pplx-", 40, &ALNUM, kind::SERVICE),
    form("nvapi-", 40, &BASE64_URL, kind::SERVICE),
    form("r8_", 36, &ALNUM, kind::SERVICE),
    form("SG.", 50, &BASE64_URL_DOT, kind::SERVICE),
    form("hvs.", 24, &BASE64_URL, kind::SERVICE),
    form("pypi-", 50, &BASE64_URL, kind::SERVICE),
    form("dckr_pat_", 20, &BASE64_URL, kind::SERVICE),
    form("dop_v1_", 40, &ALNUM, kind::SERVICE),
    form("shpat_", 32, &ALNUM, kind::SERVICE),
    form("lin_api_", 32, &ALNUM, kind::SERVICE),
    form("tskey-", 20, &ALNUM_DASH, kind::SERVICE),
    // Even half of one is too much.
    form("claw_", 32, &ALNUM, kind::CLAWSMITH),
];

/// A form of [`FORMS`] at `at`.
pub(super) fn form_at(view: &View<'_>, at: usize, form: &Prefixed) -> Option<Secret> {
    if view.follows(at, &WORD) || !view.starts_with(at, form.prefix.as_bytes()) {
        return None;
    }
    form.body.after(view, at, form.prefix.len())
}

/// `sk-` keys: OpenAI, Anthropic and others with the same form.
///
/// Without a known second part (`sk-proj-`), 20 characters in a row must be letters and digits, so that
/// kebab-case names (`sk-fading-circle-10-large`) stay.
pub(super) fn sk(view: &View<'_>, at: usize) -> Option<Secret> {
    const ISSUED: &[&str] = &["proj-", "svcacct-", "admin-", "None-", "or-", "lf-"];
    if view.follows(at, &BASE64_URL) || !view.starts_with(at, b"sk-") {
        return None;
    }
    if view.starts_with(at + 3, b"ant-") {
        return body(20, &BASE64_URL, kind::ANTHROPIC).after(view, at, 7);
    }
    if let Some(part) = ISSUED.iter().find(|part| view.starts_with(at + 3, part.as_bytes())) {
        return body(20, &BASE64_URL, kind::OPENAI).after(view, at, 3 + part.len());
    }
    body(20, &ALNUM, kind::OPENAI)
        .after(view, at, 3)
        .map(|secret| Secret { tail: Tail::Run(&BASE64_URL), ..secret })
}

/// Slack's `xoxb-`, `xoxp-`, `xoxe.xoxp-`, ...
pub(super) fn slack(view: &View<'_>, at: usize) -> Option<Secret> {
    if view.follows(at, &WORD)
        || !view.starts_with(at, b"xox")
        || !view.get(at + 3).is_some_and(|byte| b"abceoprs".contains(&byte))
    {
        return None;
    }
    let dash = if view.starts_with(at + 4, b".xox") { 9 } else { 4 };
    if view.get(at + dash) != Some(b'-') {
        return None;
    }
    body(10, &ALNUM_DASH, kind::SLACK).after(view, at, dash + 1)
}

/// AWS access key ids: exactly 16 upper-case letters and digits after `AKIA` or `ASIA`.
pub(super) fn aws(view: &View<'_>, at: usize) -> Option<Secret> {
    if view.follows(at, &ALNUM) || !(view.starts_with(at, b"AKIA") || view.starts_with(at, b"ASIA")) {
        return None;
    }
    let end = view.run(at + 4, 17, &UPPER_DIGIT);
    if end != at + 20 || view.is(end, &ALNUM) || view.starts_with_placeholder(end) {
        return None;
    }
    Some(Secret { start: at, end, tail: Tail::None, kind: kind::AWS })
}

/// Telegram bot tokens: 6 to 12 digits, a colon, exactly 35 characters. `at` is the byte after the colon.
pub(super) fn telegram(view: &View<'_>, at: usize) -> Option<Secret> {
    if view.before(at) != Some(b':') {
        return None;
    }
    let digits = view.run_before(at - 1, 13, &DIGIT);
    if !(6..=12).contains(&(at - 1 - digits)) {
        return None;
    }
    let end = view.run(at, 36, &BASE64_URL);
    if end != at + 35 || view.starts_with_placeholder(end) || is_crossed_out(view.slice(at..end)) {
        return None;
    }
    Some(Secret { start: digits, end, tail: Tail::None, kind: kind::TELEGRAM })
}

impl Body {
    /// The secret that starts at `start` with a prefix of `prefix` bytes, if this body follows.
    fn after(&self, view: &View<'_>, start: usize, prefix: usize) -> Option<Secret> {
        let body = start + prefix;
        let end = view.run(body, self.least, self.class);
        if end < body + self.least || is_crossed_out(view.slice(body..end)) {
            return None;
        }
        Some(Secret { start, end, tail: Tail::Run(self.class), kind: self.kind })
    }
}

fn is_crossed_out(run: &[u8]) -> bool {
    run.iter().all(|byte| matches!(byte, b'x' | b'X'))
}
