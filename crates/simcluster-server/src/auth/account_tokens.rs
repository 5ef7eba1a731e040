//! Tokens of `ServiceAccounts`: JSON web tokens with the claims of a real server's
//! (`k8s.io/kubernetes/pkg/serviceaccount`).
//!
//! They are signed with HMAC-SHA-256: no one but the server that issued one can check it, so no keys are
//! published.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::auth::User;
use crate::server::ApiServer;
use simcluster_model::{golang, object};

/// The issuer of all tokens, and the audience of those that are for the server itself.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc";

/// By how much clocks may differ.
const LEEWAY: SignedDuration = SignedDuration::from_mins(1);

/// What a server signs tokens with.
#[derive(Clone)]
pub(crate) struct SigningKey(Hmac<Sha256>);

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(..)")
    }
}

impl SigningKey {
    /// The key of a secret text.
    pub(crate) fn new(secret: &str) -> Self {
        Self(Hmac::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of every length"))
    }

    /// A token with claims.
    pub(crate) fn token(&self, claims: &Value) -> String {
        let encode = |text: &[u8]| URL_SAFE_NO_PAD.encode(text);
        let header = encode(br#"{"alg":"HS256","typ":"JWT"}"#);
        let signed = format!("{header}.{}", encode(claims.to_string().as_bytes()));
        let signature = self.0.clone().chain_update(&signed).finalize().into_bytes();
        let signature = encode(&signature);
        format!("{signed}.{signature}")
    }

    /// Whether a text ends with its own signature.
    fn signed(&self, token: &str) -> bool {
        let Some((text, signature)) = token.rsplit_once('.') else { return false };
        let given = URL_SAFE_NO_PAD.decode(signature).unwrap_or_default();
        self.0.clone().chain_update(text).verify_slice(&given).is_ok()
    }
}

/// Whose a token is, and for which of the audiences asked for.
pub(crate) struct Authenticated {
    pub(crate) user: User,
    pub(crate) audiences: Vec<String>,
}

/// The holder of a token that is meant for one of the audiences. `Err` tells what is wrong with one of
/// this issuer, and nothing of others.
pub(crate) fn authenticate(
    server: &ApiServer,
    token: &str,
    audiences: &[String],
) -> Result<Authenticated, Option<String>> {
    let claims = claims(token).filter(|claims| text(claims, "/iss") == ISSUER).ok_or(None)?;
    if !server.token_key().signed(token) {
        return Err(Some("go-jose/go-jose: error in cryptographic primitive".to_owned()));
    }
    let own: Vec<String> = texts(claims.get("aud"));
    let both: Vec<String> = own.iter().filter(|one| audiences.contains(one)).cloned().collect();
    if both.is_empty() {
        let (own, wanted) = (quoted(&own), quoted(audiences));
        let fault = format!("token audiences {own} is invalid for the target audiences {wanted}");
        return Err(Some(fault));
    }
    check(server, &claims).map_err(Some)?;
    Ok(Authenticated { user: user(&claims), audiences: both })
}

/// What a token says, whoever signed it.
fn claims(token: &str) -> Option<Value> {
    let parts: Vec<&str> = token.split('.').collect();
    let [_, payload, _] = parts.as_slice() else { return None };
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
}

/// Whether the time is right, and what the token depends on still there.
fn check(server: &ApiServer, claims: &Value) -> Result<(), String> {
    let now = server.clock().now();
    let time = |name: &str| {
        let seconds = claims.get(name).and_then(Value::as_i64).unwrap_or_default();
        Timestamp::from_second(seconds).unwrap_or_default()
    };
    if now.duration_since(time("exp")) > LEEWAY {
        return Err("service account token has expired".to_owned());
    }
    if time("nbf").duration_since(now) > LEEWAY {
        return Err("service account token is not valid yet".to_owned());
    }
    let own = |name: &str| text(claims, &format!("/kubernetes.io/{name}"));
    let (namespace, name) = (own("namespace"), own("serviceaccount/name"));
    let account = server.get("/serviceaccounts", namespace, name);
    let account = account.ok_or_else(|| format!("serviceaccounts \"{name}\" not found"))?;
    let (uid, claimed) = (object::uid(&account), own("serviceaccount/uid"));
    if uid != claimed {
        return Err(format!("service account UID ({uid}) does not match claim ({claimed})"));
    }
    if is_gone(&account, now) {
        return Err(format!("service account {namespace}/{name} has been deleted"));
    }
    // Pods name their Nodes, which may go.
    let kinds: &[(&str, &str)] = if own("pod/name").is_empty() {
        &[("secret", namespace), ("node", "")]
    } else {
        &[("pod", namespace)]
    };
    for (kind, namespace) in kinds {
        let name = own(&format!("{kind}/name"));
        if name.is_empty() {
            continue;
        }
        let invalidated = || "service account token has been invalidated".to_owned();
        let bound = server.get(&format!("/{kind}s"), namespace, name).ok_or_else(invalidated)?;
        let (uid, claimed) = (object::uid(&bound), own(&format!("{kind}/uid")));
        if uid != claimed {
            let claim = format!("service account {kind} ref claim ({claimed})");
            return Err(format!("{kind} UID ({uid}) does not match {claim}"));
        }
        if is_gone(&bound, now) {
            return Err(invalidated());
        }
    }
    Ok(())
}

/// Whether an object is to have been deleted for some time.
fn is_gone(object: &Value, now: Timestamp) -> bool {
    let deleted = object::meta_str(object, "deletionTimestamp").parse::<Timestamp>();
    deleted.is_ok_and(|deleted| now.duration_since(deleted) > LEEWAY)
}

fn user(claims: &Value) -> User {
    let own = |name: &str| text(claims, &format!("/kubernetes.io/{name}"));
    let mut user = User::service_account(own("namespace"), own("serviceaccount/name"));
    own("serviceaccount/uid").clone_into(&mut user.uid);
    let mut extra = |name: &str, value: &str| {
        if !value.is_empty() {
            let name = format!("authentication.kubernetes.io/{name}");
            user.extra.insert(name, vec![value.to_owned()]);
        }
    };
    extra("credential-id", &format!("JTI={}", text(claims, "/jti")));
    for kind in ["pod", "node"] {
        for field in ["name", "uid"] {
            extra(&format!("{kind}-{field}"), own(&format!("{kind}/{field}")));
        }
    }
    user
}

/// A list of texts as Go's `%q` prints it.
fn quoted(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| golang::quote(text)).collect();
    format!("[{}]", texts.join(" "))
}

fn text<'a>(claims: &'a Value, pointer: &str) -> &'a str {
    claims.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The texts of a list.
pub(crate) fn texts(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The audiences of tokens for the server itself.
pub(crate) fn own_audiences() -> Vec<String> {
    vec![ISSUER.to_owned()]
}

/// A reference to an object, as claims have it.
pub(crate) fn reference(object: &Value) -> Value {
    json!({ "name": object::name(object), "uid": object::uid(object) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_was_changed_is_not_signed() {
        let key = SigningKey::new("secret");
        let token = key.token(&json!({ "iss": ISSUER }));
        assert!(key.signed(&token));
        assert!(!SigningKey::new("other").signed(&token));
        assert!(!key.signed(&format!("{token}x")));
        assert!(!key.signed(&token[..token.len() - 2]));
        let (text, signature) = token.rsplit_once('.').unwrap();
        assert!(!key.signed(&format!("{text}A.{signature}")));
        assert!(!key.signed("") && !key.signed("..") && !key.signed(text));
    }
}
