//! Failures of logins, in words for a person.

use claw_net::Url;
use rmcp::transport::auth::AuthError;

/// Returns the message of an authorization server that refused, from the address that it redirected the
/// browser to.
pub(super) fn refusal(callback: &str) -> Option<String> {
    let url = Url::parse(callback).ok()?;
    let value =
        |key: &str| url.query_pairs().find(|(name, _)| name == key).map(|(_, value)| value.into_owned());
    let error = value("error")?;
    let about = value("error_description").map(|about| format!(": {about}")).unwrap_or_default();
    let words = format!("the authorization server refused the login ({error}{about})");
    Some(words.chars().filter(|c| !c.is_control()).take(400).collect())
}

pub(super) fn registration(error: &AuthError) -> String {
    format!(
        "the OAuth client could not be registered ({}); register one at the server, and name it with `--client-id`",
        words(error)
    )
}

/// Rewords an error of the protocol library.
pub(super) fn words(error: &AuthError) -> String {
    let text = match error {
        AuthError::NoAuthorizationSupport => "the server names no authorization server".to_owned(),
        AuthError::AuthorizationRequired => "a login is needed".to_owned(),
        AuthError::AuthorizationServerMismatch { expected_issuer, received_issuer } => {
            format!(
                "the answer is from `{received_issuer}`, but the login was started at `{expected_issuer}`"
            )
        }
        error => error.to_string(),
    };
    text.chars().filter(|c| !c.is_control()).take(400).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_in_the_servers_words() {
        let told = refusal("http://127.0.0.1:1/callback?error=access_denied&error_description=not%20you%0a")
            .unwrap();
        assert_eq!(told, "the authorization server refused the login (access_denied: not you)");
        assert_eq!(refusal("http://127.0.0.1:1/callback?code=a&state=b"), None);
    }
}
