//! Lists of hosts, with wildcards.

use std::net::IpAddr;

/// The reason why a text is not a pattern of hosts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a pattern of hosts; write `example.com`, or `*.example.com` for all names below it")]
pub struct BadPattern {
    /// The text.
    pub text: String,
}

/// Patterns of hosts: a name, a literal address, `*.example.com` for the names below one, or `*` for all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostPatterns {
    exact: Vec<String>,
    /// Each begins with a dot.
    below: Vec<String>,
    all: bool,
}

impl HostPatterns {
    /// Compiles patterns.
    pub fn compile<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, BadPattern> {
        let mut compiled = Self::default();
        for text in patterns {
            let refused = || BadPattern { text: text.to_owned() };
            let plain = text.trim().trim_end_matches('.').to_lowercase();
            if plain == "*" {
                compiled.all = true;
                continue;
            }
            let (is_below, name) = match plain.strip_prefix("*.") {
                Some(name) => (true, name),
                None => (false, plain.as_str()),
            };
            let host = host(name).ok_or_else(refused)?;
            match is_below {
                true if host.parse::<IpAddr>().is_ok() || host.starts_with('[') => return Err(refused()),
                true => compiled.below.push(format!(".{host}")),
                false => compiled.exact.push(host),
            }
        }
        Ok(compiled)
    }

    /// Returns whether the list has no pattern.
    pub fn is_empty(&self) -> bool {
        !self.all && self.exact.is_empty() && self.below.is_empty()
    }

    /// Returns whether a pattern matches the host. A trailing dot is ignored.
    pub fn covers(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_lowercase();
        self.all
            || self.exact.contains(&host)
            || self.below.iter().any(|end| host.len() > end.len() && host.ends_with(end.as_str()))
    }
}

/// A host as addresses spell it: international names in ASCII, addresses in their plain notation.
fn host(name: &str) -> Option<String> {
    if name.is_empty() || name.contains(['/', '*', '@', '?', '#', ' ', '%']) {
        return None;
    }
    let url = claw_net::Url::parse(&format!("http://{name}/")).ok()?;
    let is_bare = url.port().is_none() && !name.ends_with(":80");
    is_bare.then(|| url.host_str().map(str::to_owned)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covers_names_and_those_below() {
        let list =
            HostPatterns::compile(["Example.com", "*.evil.example", "10.0.0.1", "bücher.example", "[::1]"])
                .unwrap();
        for host in [
            "example.com",
            "EXAMPLE.COM",
            "example.com.",
            "a.evil.example",
            "b.a.evil.example",
            "10.0.0.1",
            "xn--bcher-kva.example",
            "[::1]",
        ] {
            assert!(list.covers(host), "{host}");
        }
        for host in
            ["www.example.com", "evil.example", "notevil.example", "example.com.org", ".evil.example", ""]
        {
            assert!(!list.covers(host), "{host}");
        }
        assert!(HostPatterns::compile(["*"]).unwrap().covers("any.example"));
        assert!(HostPatterns::default().is_empty());
    }

    #[test]
    fn refuses_patterns_that_cover_something_else_than_they_seem_to() {
        for text in [
            "",
            "http://a.example",
            "a.example/b",
            "*.*.example",
            "a*.example",
            "a.example:80",
            "*.10.0.0.1",
            "u@a",
        ] {
            assert_eq!(HostPatterns::compile([text]).unwrap_err().text, text);
        }
    }
}
