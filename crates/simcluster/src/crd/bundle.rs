//! CA bundles of webhooks.

use base64::Engine as _;

/// What is wrong with a bundle as it stands in a `clientConfig` (base64 of PEM); an empty one is good.
#[must_use]
pub(super) fn fault(bundle: &str) -> Option<&'static str> {
    if bundle.is_empty() {
        return None;
    }
    let pem = base64::engine::general_purpose::STANDARD.decode(bundle).unwrap_or_default();
    let text = String::from_utf8_lossy(&pem);
    let blocks = text.matches("-----BEGIN ").count();
    if blocks == 0 || text.matches("-----END ").count() < blocks {
        return Some("unable to load root certificates: unable to parse bytes as PEM block");
    }
    None
}
