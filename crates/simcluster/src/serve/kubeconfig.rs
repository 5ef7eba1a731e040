//! Kubeconfigs: their text, and files of which nobody else reads a byte.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A kubeconfig for the holder of a token.
pub(super) fn text(address: SocketAddr, authority_pem: &str, user: &str, token: &str) -> String {
    let authority = STANDARD.encode(authority_pem);
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: simcluster
  cluster:
    server: https://{address}
    certificate-authority-data: {authority}
users:
- name: {user}
  user:
    token: {token}
contexts:
- name: simcluster
  context:
    cluster: simcluster
    user: {user}
    namespace: default
current-context: simcluster
"
    )
}

/// Writes a file with mode 0600. The text is written beside it and takes its place at once, so that it
/// never stands in a file that others may read, and goes to no place where a link leads.
pub(super) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "this is no plain file"));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut beside = std::ffi::OsString::from(".");
    beside.push(name);
    beside.push(format!(".{}", std::process::id()));
    let beside = path.with_file_name(beside);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    let written = file
        .set_permissions(Permissions::from_mode(0o600))
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // The first error counts.
        let _ = fs::remove_file(&beside);
    }
    written
}
