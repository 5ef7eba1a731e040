//! Files of one volume that hide each other (`warningsForOverlappingVirtualPaths`).

use serde_json::{Map, Value};

use crate::builtin::value::{at, items, text};

/// A path in a volume, and of a projected volume also where it comes from.
struct Place {
    path: String,
    source: String,
}

impl Place {
    fn shown(&self) -> String {
        match self.source.as_str() {
            "" => format!("{:?}", self.path),
            source => format!("{:?} ({source})", self.path),
        }
    }

    /// Whether one of two paths is the other, or leads into it.
    fn overlaps(&self, other: &Self) -> bool {
        let (one, two) = (format!("{}/", self.path), format!("{}/", other.path));
        !self.path.is_empty()
            && !other.path.is_empty()
            && (one.starts_with(&two) || two.starts_with(&one))
    }
}

/// Warnings about each volume.
pub(super) fn warnings(volumes: &[Value], found: &mut Vec<String>) {
    for volume in volumes {
        let name = text(volume, &["name"]);
        let whole = |found: &mut Vec<String>, of: &str, places: Vec<Place>| {
            let mut seen = Vec::new();
            for place in places {
                add(place, &mut seen, name, of, found);
            }
        };
        if let Some(source) = at(volume, &["configMap"]) {
            whole(found, &format!("ConfigMap {:?}", text(source, &["name"])), places(source, ""));
        }
        if let Some(source) = at(volume, &["secret"]) {
            whole(
                found,
                &format!("Secret {:?}", text(source, &["secretName"])),
                places(source, ""),
            );
        }
        if let Some(source) = at(volume, &["downwardAPI"]) {
            whole(found, "DownwardAPI", places(source, ""));
        }
        let mut seen = Vec::new();
        for source in items(volume, &["projected", "sources"]) {
            if source.as_object().is_none_or(Map::is_empty) {
                found.push(format!("volume {name:?} (Projected) has no sources provided"));
            }
            for place in projected(source) {
                add(place, &mut seen, name, "Projected", found);
            }
        }
    }
}

/// Adds a path to those of its volume, and says which of them it overlaps.
fn add(place: Place, seen: &mut Vec<Place>, volume: &str, of: &str, found: &mut Vec<String>) {
    for other in seen.iter().filter(|other| place.overlaps(other)) {
        let pair = format!("{} with {}", place.shown(), other.shown());
        found.push(format!("volume {volume:?} ({of}): overlapping paths: {pair}"));
    }
    seen.push(place);
}

fn place(path: &str, source: &str) -> Place {
    Place { path: path.trim_end_matches('/').to_owned(), source: source.to_owned() }
}

fn places(source: &Value, called: &str) -> Vec<Place> {
    items(source, &["items"]).iter().map(|item| place(text(item, &["path"]), called)).collect()
}

/// The paths of a source of a projected volume.
fn projected(source: &Value) -> Vec<Place> {
    if let Some(map) = at(source, &["configMap"]) {
        return places(map, &format!("ConfigMap {:?}", text(map, &["name"])));
    }
    if let Some(secret) = at(source, &["secret"]) {
        return places(secret, &format!("Secret {:?}", text(secret, &["name"])));
    }
    if let Some(fields) = at(source, &["downwardAPI"]) {
        return places(fields, "DownwardAPI");
    }
    if let Some(token) = at(source, &["serviceAccountToken"]) {
        return vec![place(text(token, &["path"]), "ServiceAccountToken")];
    }
    if let Some(bundle) = at(source, &["clusterTrustBundle"]) {
        let name = Some(text(bundle, &["name"])).filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| text(bundle, &["signerName"]));
        return vec![place(text(bundle, &["path"]), &format!("ClusterTrustBundle {name:?}"))];
    }
    let Some(certificate) = at(source, &["podCertificate"]) else { return Vec::new() };
    [
        ("certificateChainPath", "PodCertificate chain"),
        ("keyPath", "PodCertificate key"),
        ("credentialBundlePath", "PodCertificate credential bundle"),
    ]
    .into_iter()
    .map(|(field, called)| place(text(certificate, &[field]), called))
    .collect()
}
