//! Keeps secrets from leaving this machine: a text that contains one, as it is or after decoding, is refused.

use claw_core::tool::{ErrorKind, ToolError};

use crate::scrub::CallScrubber;

/// Refuses a text that contains a secret, as it is or after decoding.
pub(super) fn refuse_secrets(scrubber: &CallScrubber, text: &str, what: &str) -> Result<(), ToolError> {
    let mut seen = text.to_owned();
    // Each round removes one layer of percent-encoding.
    for _ in 0..4 {
        let joined: String =
            seen.chars().filter(|c| !matches!(c, '/' | '&' | '=' | '.' | '?' | '\n')).collect();
        if scrubber.text(&seen) != seen || scrubber.knows(&joined) {
            return Err(ToolError::new(
                ErrorKind::Forbidden,
                format!("{what} holds a secret and is not sent"),
            )
            .try_instead("leave the secret out"));
        }
        let next = decoded(&seen);
        if next == seen {
            break;
        }
        seen = next;
    }
    Ok(())
}

/// Decodes percent-encoded bytes, and `+` as a space.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let pair = bytes.get(at + 1..at + 3).and_then(|pair| std::str::from_utf8(pair).ok());
        match pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()).filter(|_| byte == b'%') {
            Some(decoded) => {
                out.push(decoded);
                at += 3;
            }
            None => {
                out.push(if byte == b'+' { b' ' } else { byte });
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use claw_core::TenantId;

    use super::*;
    use crate::Scrubbers;

    #[test]
    fn refuses_a_known_secret_in_every_encoding() {
        let scrubbers = Scrubbers::default();
        let tenant = TenantId::main();
        scrubbers.add_for(&tenant, "p4ss word/of:ours").unwrap();
        let scrubber = scrubbers.for_tenant(&tenant);
        for text in [
            "https://a.example/?q=p4ss%20word%2Fof%3Aours",
            "https://a.example/?q=p4ss+word%2fof%3aours",
            "https://a.example/?q=p4ss%2520word%252Fof%253Aours",
            "https://a.example/?q=cDRzcyB3b3JkL29mOm91cnM",
            "https://a.example/70347373%20x/7034737320776f72642f6f663a6f757273",
            "https://a.example/?q=%63DRzcyB3b3JkL29mOm91cnM%3D",
            "https://a.example/%70%34%73%73%20%77%6F%72%64%2F%6F%66%3A%6F%75%72%73",
        ] {
            let error = refuse_secrets(&scrubber, text, "the address").unwrap_err();
            assert_eq!(error.kind, ErrorKind::Forbidden, "{text}");
            assert!(!error.to_string().contains("p4ss"), "{error}");
        }
        // Another tenant's secret is unknown here.
        let other = scrubbers.for_tenant(&TenantId::new("other").unwrap());
        assert!(refuse_secrets(&other, "https://a.example/?q=p4ss+word%2fof%3aours", "the address").is_ok());
        for text in [
            "https://a.example/search?q=hello+world&page=2",
            "https://a.example/%zz%",
            "https://a.example/%25",
        ] {
            assert!(refuse_secrets(&scrubber, text, "the address").is_ok(), "{text}");
        }
    }

    #[test]
    fn refuses_a_secret_that_is_split_over_parts_of_the_address() {
        let scrubbers = Scrubbers::default();
        let tenant = TenantId::main();
        scrubbers.add_for(&tenant, "hunter2hunter3").unwrap();
        let scrubber = scrubbers.for_tenant(&tenant);
        for text in ["https://a.example/hunter2/hunter3", "https://hunter2.hunter3.example/"] {
            assert!(refuse_secrets(&scrubber, text, "the address").is_err(), "{text}");
        }
    }
}
