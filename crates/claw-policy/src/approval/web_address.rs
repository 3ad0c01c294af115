//! Addresses that may carry data out: a host that is new to the session, and a path or query that is long or
//! looks like a secret.

use claw_core::tool::{Sight, Target};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{EffectRule, Judgement};

/// Rules for fetching addresses that may carry data out. A host is known once it has answered a fetch of the
/// session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WebApprovals {
    /// A request to a new host: `allow`, `ask` or `deny`.
    pub new_host: EffectRule,
    /// An address whose path and query are long, or contain a word that looks like a secret. It applies to known hosts
    /// too: such a host may be the one that asked for the data.
    pub telling_query: EffectRule,
    /// Length in characters from which a path with its query counts as long.
    #[schemars(range(min = 16, max = 8192))]
    pub long_query: u32,
}

impl Default for WebApprovals {
    fn default() -> Self {
        Self { new_host: EffectRule::Allow, telling_query: EffectRule::Ask, long_query: 256 }
    }
}

/// Judges a fetch of `url` from `host`.
pub(super) fn judge(config: &WebApprovals, host: &str, url: &str, sights: &[Sight]) -> Judgement {
    let of_host = |sight: &&Sight| matches!(&sight.target, Target::Host { host: seen } if seen == host);
    let is_known = sights.iter().find(of_host).is_some_and(|sight| sight.identity.is_some());
    let new = (!is_known).then(|| format!("`{host}` is new to the session"));
    let telling = telling(config, host, url).map(|what| match &new {
        Some(new) => format!("{new}, and {what}"),
        None => format!("in the address of `{host}`, {what}"),
    });
    let rules = [(telling, config.telling_query, "telling_query"), (new, config.new_host, "new_host")];
    let mut verdict = Judgement::Allow;
    for (what, rule, key) in rules {
        let Some(what) = what else { continue };
        let says = if rule == EffectRule::Deny { "deny" } else { "ask" };
        let reason = || format!("{what}, and `approvals.web.{key}` says {says}");
        match rule {
            EffectRule::Deny => {
                return Judgement::deny(reason())
                    .try_instead("fetch an address without that data, or ask a person")
                    .allowed_by(format!("`approvals.web.{key} = \"ask\"` asks you instead"));
            }
            EffectRule::Ask if verdict == Judgement::Allow => {
                verdict = Judgement::Ask { reason: reason() };
            }
            _ => {}
        }
    }
    verdict
}

/// The parts of an address that could carry data out.
fn telling(config: &WebApprovals, host: &str, url: &str) -> Option<String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.find(['/', '?']).map_or("", |at| &rest[at..]);
    let long = usize::try_from(config.long_query).unwrap_or(usize::MAX);
    let chars = rest.chars().count();
    if chars >= long {
        return Some(format!("path and query have {chars} characters"));
    }
    let in_host = host.split('.').filter(|label| label.len() >= 24);
    let is_end = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+' | '%'));
    let found = rest.split(is_end).chain(in_host).find(|word| looks_secret(word));
    found.map(|word| format!("the word `{}…` looks like a secret", &word[..word.floor_char_boundary(6)]))
}

/// Returns whether a word looks random: long, letters and digits mixed, few of them repeated. UUIDs, commit
/// hashes and words joined by dashes do not.
fn looks_secret(word: &str) -> bool {
    const SHORTEST: usize = 24;
    let (letters, digits) = word.chars().fold((0, 0), |(letters, digits), c| match c {
        c if c.is_ascii_alphabetic() => (letters + 1, digits),
        c if c.is_ascii_digit() => (letters, digits + 1),
        _ => (letters, digits),
    });
    let is_hex = word.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    if word.len() < SHORTEST || digits < 2 || letters < 2 || (is_hex && word.len() <= 40) {
        return false;
    }
    let parts = word.split(['-', '_', '+', '%']);
    let longest = parts.map(str::len).max().unwrap_or_default();
    longest >= 16 && entropy(word) >= 3.5
}

/// Bits per character, from the frequency of each.
fn entropy(word: &str) -> f64 {
    let mut counts = [0_u32; 256];
    word.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let total = word.len() as f64;
    let share = |count: u32| f64::from(count) / total;
    counts.iter().filter(|count| **count > 0).map(|count| -share(*count) * share(*count).log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sight(host: &str, known: bool) -> Sight {
        Sight {
            target: Target::Host { host: host.to_owned() },
            path: None,
            identity: known.then(|| "known".to_owned()),
            credential: None,
            writable: false,
        }
    }

    #[track_caller]
    fn check(config: &WebApprovals, url: &str, known: bool, expected: &str) {
        let host = url.split('/').nth(2).unwrap();
        let got = match judge(config, host, url, &[sight(host, known)]) {
            Judgement::Allow => "allow".to_owned(),
            Judgement::Ask { reason } => format!("ask {reason}"),
            Judgement::Deny { reason, .. } => format!("deny {reason}"),
        };
        assert!(got.starts_with(expected), "{url}: {got}");
    }

    #[test]
    fn asks_before_data_goes_to_a_host_that_is_new() {
        let usual = WebApprovals::default();
        let secret = "https://evil.example/c?d=aGVsbG8gd29ybGQgdGhpcyBpcyBh4fK9";
        check(&usual, secret, false, "ask `evil.example` is new");
        check(
            &usual,
            secret,
            true,
            "ask in the address of `evil.example`, the word `aGVsbG…` looks like a secret",
        );
        check(&usual, &format!("https://evil.example/{}", "word/".repeat(80)), false, "ask");
        check(&usual, "https://mzxw6ytboi2gk43dn5zgs5dfme2q.evil.example/", false, "ask");
        for plain in [
            "https://news.example/2026/11/16/the-city-council-votes-on-new-tram-line-27",
            "https://code.example/repo/commit/0123456789abcdef0123456789abcdef01234567",
            "https://docs.example/550e8400-e29b-41d4-a716-446655440000",
            "https://video.example/watch?v=dQw4w9WgXcQ&t=42",
            "https://wiki.example/wiki/Rhabarberbarbarabarbarbarenbartbarbierbier",
        ] {
            check(&usual, plain, false, "allow");
            check(&usual, plain, true, "allow");
        }
    }

    #[test]
    fn asks_before_data_goes_to_a_host_that_was_just_fetched() {
        let (usual, long) = (WebApprovals::default(), format!("https://evil.example/?{}", "x".repeat(300)));
        check(
            &usual,
            &long,
            true,
            "ask in the address of `evil.example`, path and query have 302 characters",
        );
        let denying = WebApprovals { telling_query: EffectRule::Deny, ..WebApprovals::default() };
        check(&denying, &long, true, "deny");
        let open = WebApprovals { telling_query: EffectRule::Allow, new_host: EffectRule::Deny, ..denying };
        check(&open, &long, true, "allow");
    }

    #[test]
    fn follows_the_configuration() {
        let strict =
            WebApprovals { new_host: EffectRule::Ask, telling_query: EffectRule::Deny, long_query: 64 };
        check(&strict, "https://a.example/", false, "ask");
        check(&strict, "https://a.example/", true, "allow");
        check(&strict, &format!("https://a.example/?{}", "x".repeat(80)), false, "deny");
        let open = WebApprovals { telling_query: EffectRule::Allow, ..WebApprovals::default() };
        check(&open, &format!("https://a.example/?{}", "x".repeat(800)), false, "allow");
    }
}
