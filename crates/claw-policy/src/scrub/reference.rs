//! A simple and slow scrubber for comparison: every rule is tried at every position, every value is compared
//! everywhere.
//!
//! Regular rules are written a second time, as regexes. Keys, values and PEM lines are judged by the rules
//! themselves.

use base64::Engine as _;
use claw_core::redact::PLACEHOLDER;
use regex::bytes::Regex;

use super::{
    rules::{self, Rule, Secret, Tail},
    view::{Settings, View},
};

/// A rule as a regex on the text that starts at a position; its group `s` is the secret.
struct Regular {
    regex: Regex,
    /// Bytes that must not precede it.
    not_after: Regex,
}

pub(super) struct Reference {
    regular: Vec<Regular>,
    hex: Regex,
    literals: Vec<(String, Rule)>,
    values: Vec<Vec<u8>>,
}

/// Returns whether a run is all `x`, which no regex of the rules matches.
fn is_crossed_out(run: &[u8]) -> bool {
    run.to_ascii_lowercase() == vec![b'x'; run.len()]
}

impl Reference {
    pub(super) fn new(values: &[&str]) -> Self {
        let regular = |not_after: &str, regex: &str| Regular {
            regex: Regex::new(&format!("(?s-u)^(?:{regex})")).unwrap(),
            not_after: Regex::new(&format!("(?-u)^[{not_after}]")).unwrap(),
        };
        Self {
            regular: vec![
                regular(r"\w", r"(?<s>gh[pousr]_(?<run>[0-9A-Za-z]{36})[0-9A-Za-z]*)"),
                regular(r"\w", r"(?<s>github_pat_(?<run>\w{36})\w*)"),
                regular(r"\w", r"(?<s>gl(?:pat|dt|rt|ptt|cbt|soat)-(?<run>[\w-]{20})[\w-]*)"),
                regular(r"\w", r"(?<s>xapp-(?<run>[0-9A-Za-z-]{20})[0-9A-Za-z-]*)"),
                regular(r"\w", r"(?<s>xox[abceoprs](?:\.xox.)?-(?<run>[0-9A-Za-z-]{10})[0-9A-Za-z-]*)"),
                regular(r"\w", r"(?<s>[sr]k_(?:live|test)_(?<run>[0-9A-Za-z]{16})[0-9A-Za-z]*)"),
                regular(r"\w", r"(?<s>whsec_(?<run>[0-9A-Za-z+/=]{20})[0-9A-Za-z+/=]*)"),
                regular(r"\w", r"(?<s>AIza(?<run>[\w-]{35})[\w-]*)"),
                regular(r"\w", r"(?<s>ya29\.(?<run>[\w.-]{20})[\w.-]*)"),
                regular(r"\w", r"(?<s>GOCSPX-(?<run>[\w-]{20})[\w-]*)"),
                regular(r"\w", r"(?<s>npm_(?<run>[0-9A-Za-z]{36})[0-9A-Za-z]*)"),
                regular(r"\w", r"(?<s>hf_(?<run>[0-9A-Za-z]{30})[0-9A-Za-z]*)"),
                regular(r"\w", r"(?<s>gsk_(?<run>[0-9A-Za-z]{40})[0-9A-Za-z]*)"),
                regular(r"\w", r"(?<s>xai-(?<run>[0-9A-Za-z]{40})[0-9A-Za-z]*)"),
                regular(r"\w", r"(?<s>pplx-(?<run>[0-9A-Za-z]{40})[0-9A-Za-z]*)"),
                regular(r"\w", r"(?<s>nvapi-(?<run>[\w-]{40})[\w-]*)"),
                regular(r"\w", r"(?<s>r8_(?<run>[0-9A-Za-z]{36})[0-9A-Za-z]*)"),
                regular(r"\w", r"(?<s>SG\.(?<run>[\w.-]{50})[\w.-]*)"),
                regular(r"\w", r"(?<s>hvs\.(?<run>[\w-]{24})[\w-]*)"),
                regular(r"\w", r"(?<s>pypi-(?<run>[\w-]{50})[\w-]*)"),
                regular(r"\w", r"(?<s>dckr_pat_(?<run>[\w-]{20})[\w-]*)"),
                regular(r"\w", r"(?<s>dop_v1_(?<run>[0-9A-Za-z]{40})[0-9A-Za-z]*)"),
                regular(r"\w", r"(?<s>shpat_(?<run>[0-9A-Za-z]{32})[0-9A-Za-z]*)"),
                regular(r"\w", r"(?<s>lin_api_(?<run>[0-9A-Za-z]{32})[0-9A-Za-z]*)"),
                regular(r"\w", r"(?<s>tskey-(?<run>[0-9A-Za-z-]{20})[0-9A-Za-z-]*)"),
                regular(r"\w", r"(?<s>claw_(?<run>[0-9A-Za-z]{32})[0-9A-Za-z]*)"),
                regular(r"\w-", r"(?<s>sk-(?:ant|proj|svcacct|admin|None|or|lf)-(?<run>[\w-]{20})[\w-]*)"),
                regular(r"\w-", r"(?<s>sk-(?<run>[0-9A-Za-z]{20})[\w-]*)"),
                regular(r"0-9A-Za-z", r"(?<s>A[KS]IA[0-9A-Z]{16})(?:[^0-9A-Za-z]|$)"),
                regular(r"\w-", r"(?<s>eyJ[\w-]{7,1021}\.[\w-]{16}[\w.-]*)"),
            ],
            hex: Regex::new("(?-u)^[0-9A-Fa-f]{64,}").unwrap(),
            literals: rules::literals(),
            values: values
                .iter()
                .flat_map(|value| of_line_breaks(value))
                .flat_map(|value| all_forms(&value))
                .collect(),
        }
    }

    pub(super) fn scrub(&self, text: &[u8]) -> Vec<u8> {
        self.scrub_patterns(&self.scrub_values(text))
    }

    fn scrub_values(&self, text: &[u8]) -> Vec<u8> {
        let mut taken = vec![false; text.len()];
        for at in 0..text.len() {
            taken[at] |= text[at..].starts_with(PLACEHOLDER.as_bytes());
        }
        let placeholders: Vec<usize> = (0..text.len()).filter(|&at| taken[at]).collect();
        let mut secret = vec![false; text.len()];
        for at in 0..text.len() {
            for form in &self.values {
                let end = at + form.len();
                let apart = placeholders.iter().all(|&p| end <= p || p + PLACEHOLDER.len() <= at);
                if apart && text[at..].starts_with(form) {
                    secret[at..end].fill(true);
                }
            }
        }
        let mut out = Vec::new();
        for (at, &byte) in text.iter().enumerate() {
            match (secret[at], at > 0 && secret[at - 1]) {
                (true, false) => out.extend(PLACEHOLDER.as_bytes()),
                (true, true) => {}
                (false, _) => out.push(byte),
            }
        }
        out
    }

    fn scrub_patterns(&self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let (mut at, mut kept, mut floor) = (0, 0, None);
        let mut ahead: Vec<Secret> = Vec::new();
        let mut below = Settings::No;
        while at < text.len() {
            let due = ahead.last().is_some_and(|secret| secret.start <= at);
            let secret = if due { ahead.pop() } else { self.judge(text, floor, at, below) };
            below = self.heading(text, floor, at).unwrap_or(below);
            let Some(mut secret) = secret else {
                at += 1;
                continue;
            };
            if secret.start > at {
                if ahead.last().is_none_or(|nearest| secret.start < nearest.start) {
                    ahead.push(secret);
                }
                at += 1;
                continue;
            }
            secret.start = secret.start.max(floor.unwrap_or(0));
            if secret.start > secret.end {
                continue;
            }
            out.extend_from_slice(&text[kept..secret.start]);
            if floor != Some(secret.start) {
                out.extend_from_slice(PLACEHOLDER.as_bytes());
            }
            (at, _) = secret.tail.swallow(text, secret.end, true);
            (kept, floor) = (at, Some(at));
        }
        out.extend_from_slice(&text[kept..]);
        out
    }

    fn heading(&self, text: &[u8], floor: Option<usize>, at: usize) -> Option<Settings> {
        let starts = ["+++ ", "==> "].iter().any(|start| text[at..].starts_with(start.as_bytes()));
        starts.then(|| Rule::Heading.heading(&View::new(text, floor, at), at)).flatten()
    }

    fn judge(&self, text: &[u8], floor: Option<usize>, at: usize, below: Settings) -> Option<Secret> {
        let view = View::new(text, floor, at).of_settings(below);
        let literal = self.literals.iter().find(|(literal, _)| {
            text[at..]
                .get(..literal.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(literal.as_bytes()))
        });
        let by_literal = match literal {
            Some((_, rule @ (Rule::Pair(_) | Rule::PemBegin | Rule::PemEnd))) => rule.judge(&view, at),
            Some((_, Rule::Url)) => url(text, floor, at),
            Some((_, Rule::Pgpass)) => pgpass(text, floor, at),
            _ => self.regular(text, floor, at),
        };
        by_literal.or_else(|| match self.long_hex(text, floor, at) {
            Some(end) => rules::judge_run(&view, at).inspect(|secret| {
                let end_of_tail = secret.tail.swallow(text, secret.end, true).0;
                assert_eq!((secret.start, end_of_tail), (at, end), "hex");
            }),
            None => rules::judge_run(&view, at),
        })
    }

    fn regular(&self, text: &[u8], floor: Option<usize>, at: usize) -> Option<Secret> {
        self.regular.iter().find_map(|rule| {
            if at > 0 && floor != Some(at) && rule.not_after.is_match(&text[at - 1..at]) {
                return None;
            }
            let found = rule.regex.captures(&text[at..])?;
            if found.name("run").is_some_and(|run| is_crossed_out(run.as_bytes())) {
                return None;
            }
            let end = at + found.name("s")?.end();
            if text[at..].starts_with(b"A")
                && text[end..].starts_with(PLACEHOLDER.as_bytes())
                && end - at == 20
            {
                return None;
            }
            Some(Secret { start: at, end, tail: Tail::None, kind: "" })
        })
    }

    fn long_hex(&self, text: &[u8], floor: Option<usize>, at: usize) -> Option<usize> {
        if at > 0 && floor != Some(at) && text[at - 1].is_ascii_hexdigit() {
            return None;
        }
        Some(at + self.hex.find(&text[at..])?.end())
    }
}

fn url(text: &[u8], floor: Option<usize>, at: usize) -> Option<Secret> {
    if at == 0 || floor == Some(at) || !text[at - 1].is_ascii_alphanumeric() {
        return None;
    }
    let authority = Regex::new(
        r##"(?s-u)^://([\x21-\x7e\x80-\xff&&[^"'`/?#\\]]{0,511})(?:[^\x21-\x7e\x80-\xff]|["'`/?#\\]|$)"##,
    )
    .unwrap();
    let authority = authority.captures(&text[at..])?.get(1)?;
    let before =
        authority.as_bytes().windows(PLACEHOLDER.len()).position(|part| part == PLACEHOLDER.as_bytes());
    let authority = &authority.as_bytes()[..before.unwrap_or(authority.len())];
    let password = Regex::new(r"(?s-u)^[^:@]*(?:@[^:]*)?:(.+)@[^@]*$").unwrap();
    let password = password.captures(authority)?.get(1)?;
    if super::rules::is_variable(password.as_bytes()) {
        return None;
    }
    let start = at + 3 + password.start();
    Some(Secret { start, end: start + password.len(), tail: Tail::None, kind: "" })
}

/// The secret in a line of `.pgpass` whose port is at `at`; the rules themselves decide what is a password
/// there.
fn pgpass(text: &[u8], floor: Option<usize>, at: usize) -> Option<Secret> {
    if at == 0 || floor == Some(at) || !Regex::new("(?-u)^[-\\w.*]").unwrap().is_match(&text[at - 1..]) {
        return None;
    }
    let line = Regex::new(
        r##"(?s-u)^:5432:[\x21-\x7e\x80-\xff&&[^"'`\\:()\[\]{}<>,;|/]]{1,64}:[\x21-\x7e\x80-\xff&&[^"'`\\:()\[\]{}<>,;|/]]{1,64}:([\x21-\x7e\x80-\xff&&[^"'`\\]]+)(?:[ \t]{0,8}(?:[\n\r]|\\[nr]|$)|[ \t]{1,8}[#;])"##,
    )
    .unwrap();
    let password = line.captures(&text[at..])?.get(1)?;
    let start = at + password.start();
    rules::is_any_value(password.as_bytes()).then_some(Secret {
        start,
        end: start + password.len(),
        tail: Tail::None,
        kind: "",
    })
}

/// A value with each kind of line break, and without those at its end.
fn of_line_breaks(value: &str) -> Vec<String> {
    if !value.contains(['\r', '\n']) {
        return vec![value.to_owned()];
    }
    let lines = value.replace("\r\n", "\n").replace('\r', "\n");
    let trimmed = lines.trim_end_matches('\n').to_owned();
    let crlf = |text: &str| text.replace('\n', "\r\n");
    let others = [crlf(&lines), crlf(&trimmed), lines, trimmed];
    let others = others.into_iter().filter(|other| other.len() >= 6);
    others.chain([value.to_owned()]).collect()
}

fn all_forms(value: &str) -> Vec<Vec<u8>> {
    let mut all = forms(value.as_bytes());
    for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
        let mut form: Vec<u8> = value.encode_utf16().flat_map(bytes).collect();
        if form.first() == Some(&0) {
            form.remove(0);
        }
        if form.last() == Some(&0) {
            form.pop();
        }
        all.push(form);
    }
    all
}

/// All forms of a value, from the base64 crate and `format!`.
fn forms(value: &[u8]) -> Vec<Vec<u8>> {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    let mut forms = vec![value.to_vec()];
    for offset in 0..3 {
        let padded = [&b"\0\0"[..offset], value].concat();
        let bits = padded.len() * 8;
        for engine in [STANDARD, URL_SAFE] {
            let encoded = engine.encode(&padded);
            forms.push(encoded.as_bytes()[(offset * 8).div_ceil(6)..bits / 6].to_vec());
        }
    }
    forms.push(value.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into_bytes());
    forms.push(value.iter().map(|byte| format!("{byte:02X}")).collect::<String>().into_bytes());
    for upper in [false, true] {
        for (kept, blank) in [("-._~", "%20"), ("-._~!'()*", "%20"), ("-._*", "+")] {
            let one = |&byte: &u8| match byte {
                b' ' => blank.to_owned(),
                _ if byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte) => {
                    char::from(byte).to_string()
                }
                _ if upper => format!("%{byte:02X}"),
                _ => format!("%{byte:02x}"),
            };
            forms.push(value.iter().map(one).collect::<String>().into_bytes());
        }
    }
    let quoted = serde_json::to_string(std::str::from_utf8(value).unwrap()).unwrap();
    let quoted = &quoted[1..quoted.len() - 1];
    let escaped = |c: char, upper: bool| {
        let units =
            c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
        if upper { units.to_uppercase().replace("\\U", "\\u") } else { units }
    };
    for bits in 0..16 {
        let [upper, html, beyond, slash] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
        let one = |c: char| match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' if html => escaped(c, upper),
            '/' if slash => "\\/".to_owned(),
            _ if beyond && !c.is_ascii() => escaped(c, upper),
            _ => c.to_string(),
        };
        forms.push(quoted.chars().map(one).collect::<String>().into_bytes());
    }
    forms
}
