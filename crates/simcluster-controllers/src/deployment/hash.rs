//! Names of ReplicaSets: a hash of the Pod template.

use k8s_openapi::api::core::v1::PodTemplateSpec;

/// Characters of generated names: no vowels, no look-alikes, so that no words come out.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// Longest name of an object (an RFC 1123 subdomain).
const NAME_MAX: usize = 253;

/// The value of the label `pod-template-hash`: the same for equal templates, another for each count of
/// collisions. Stable, but not the number that Kubernetes computes from Go's print of the struct.
pub(crate) fn template_hash(template: &PodTemplateSpec, collisions: Option<i32>) -> String {
    let text = serde_json::to_vec(template).expect("a Pod template is plain data");
    let count = collisions.map(i32::to_le_bytes);
    let bytes = text.iter().chain(count.iter().flatten());
    // FNV-1a, 32 bits.
    let sum =
        bytes.fold(0x811c_9dc5_u32, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    sum.to_string()
        .bytes()
        .filter_map(|digit| ALPHABET.get(usize::from(digit) % ALPHABET.len()))
        .map(|letter| char::from(*letter))
        .collect()
}

/// `<deployment>-<hash>`, the Deployment's name cut where the whole would be too long.
pub(crate) fn replica_set_name(deployment: &str, hash: &str) -> String {
    let room = NAME_MAX.saturating_sub(hash.len() + 1);
    let cut: String = deployment.chars().take(room).collect();
    format!("{cut}-{hash}")
}
