//! Origins: scheme, host and port.

use std::fmt;
use std::str::FromStr;

use url::Url;

/// The origin of a URL: scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    scheme: String,
    host: String,
    port: u16,
}

/// A text that is not an origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` names no origin; write it as `http://localhost:11434`")]
pub struct NotAnOrigin {
    /// The text.
    pub text: String,
}

impl Origin {
    /// Returns the origin of a URL; `None` if it is not HTTP.
    pub fn of(url: &Url) -> Option<Self> {
        let scheme = Some(url.scheme()).filter(|scheme| matches!(*scheme, "http" | "https"))?;
        Some(Self {
            scheme: scheme.to_owned(),
            host: url.host_str()?.to_owned(),
            port: url.port_or_known_default()?,
        })
    }
}

impl Origin {
    pub(crate) const fn port(&self) -> u16 {
        self.port
    }
}

impl FromStr for Origin {
    type Err = NotAnOrigin;

    fn from_str(text: &str) -> Result<Self, NotAnOrigin> {
        let refused = || NotAnOrigin { text: text.to_owned() };
        let url = Url::parse(text).map_err(|_| refused())?;
        let bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
        let plain = bare && url.username().is_empty() && url.password().is_none();
        Self::of(&url).filter(|_| plain).ok_or_else(refused)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.scheme, self.host, self.port)
    }
}
