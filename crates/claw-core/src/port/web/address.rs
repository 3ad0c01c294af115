//! Addresses of pages, in the one spelling that every check reads alike.

use std::fmt;

use smol_str::SmolStr;
use url::{Host, Url};

use crate::tool::Origin;

/// The longest address.
const LONGEST: usize = 8 * 1024;

/// An address of a page: `http` or `https`, no user name, a host in its plain notation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WebAddress {
    url: Url,
}

/// The reason why a text is not an address of a page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct BadAddress {
    /// The problem, and the form to write instead.
    pub reason: String,
}

impl WebAddress {
    /// Parses an address. Rejects spellings that programs read differently: user names, octal, hexadecimal,
    /// decimal and short addresses, encoded hosts, control characters, backslashes.
    pub fn parse(text: &str) -> Result<Self, BadAddress> {
        let text = text.trim();
        if text.len() > LONGEST {
            return refuse(format!("the address has {} bytes; at most {LONGEST} are fetched", text.len()));
        }
        if text.chars().any(|c| c.is_control() || c == '\\' || c.is_whitespace()) {
            return refuse("the address holds blanks, control characters or backslashes; encode them");
        }
        let mut url = Url::parse(text).map_err(|error| BadAddress {
            reason: format!("the address does not read ({error}); write it like `https://example.com/page`"),
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return refuse(format!("`{}` is not fetched; use http or https", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() || authority(text).contains('@') {
            return refuse("the address holds a user name or a password; leave them out");
        }
        let spelled = authority(text);
        if spelled.contains('%') {
            return refuse("the host is percent-encoded; write it plainly");
        }
        match url.host() {
            Some(Host::Ipv4(address)) if !is_spelled(spelled, &address.to_string()) => {
                return refuse(format!("the host is an unusual notation of {address}; write it so"));
            }
            Some(_) => {}
            None => return refuse("the address has no host"),
        }
        url.set_fragment(None);
        Ok(Self { url })
    }

    /// The address as text.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// The host: a name or a literal address, lower case.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> Origin {
        Origin {
            scheme: self.url.scheme().into(),
            host: SmolStr::from(self.host()),
            port: self.url.port_or_known_default().unwrap_or_default(),
        }
    }
}

impl fmt::Display for WebAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn refuse<T>(reason: impl Into<String>) -> Result<T, BadAddress> {
    Err(BadAddress { reason: reason.into() })
}

/// Returns the part of an address between its slashes, as it was written.
fn authority(text: &str) -> &str {
    let rest = text.split_once(':').map_or("", |(_, rest)| rest).trim_start_matches('/');
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// Returns whether an authority is written as this host, with or without a port.
fn is_spelled(authority: &str, host: &str) -> bool {
    let spelled = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    spelled == host
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, why: &str) {
        let error = WebAddress::parse(text).unwrap_err();
        assert!(error.reason.contains(why), "{text}: {error}");
    }

    #[test]
    fn reads_plain_addresses() {
        for (text, shown, origin) in [
            ("https://Example.COM/a?b=c#d", "https://example.com/a?b=c", "https://example.com:443"),
            (" http://10.0.0.1:8080 ", "http://10.0.0.1:8080/", "http://10.0.0.1:8080"),
            ("http://[::1]/", "http://[::1]/", "http://[::1]:80"),
            (
                "https://münchen.example/ä",
                "https://xn--mnchen-3ya.example/%C3%A4",
                "https://xn--mnchen-3ya.example:443",
            ),
        ] {
            let address = WebAddress::parse(text).unwrap();
            assert_eq!((address.as_str(), address.origin().to_string().as_str()), (shown, origin));
        }
    }

    #[test]
    fn refuses_spellings_that_programs_read_differently() {
        for host in ["0177.0.0.1", "2130706433", "0x7f000001", "127.1", "0x7f.1", "1.1", "0"] {
            refused(&format!("http://{host}/"), "unusual notation");
        }
        refused("http://%31%32%37.0.0.1/", "percent-encoded");
        refused("http://example.com@127.0.0.1/", "user name");
        refused("http://@127.0.0.1/", "user name");
        refused("http://a:b@example.com/", "user name");
        refused("http:\\\\127.0.0.1\\", "backslashes");
        refused("http://exa\tmple.com/", "control");
        refused("file:///etc/passwd", "`file` is not fetched");
        refused("javascript:alert(1)", "is not fetched");
        refused("example.com", "does not read");
        refused(&format!("http://a.example/{}", "x".repeat(9000)), "at most");
    }
}
