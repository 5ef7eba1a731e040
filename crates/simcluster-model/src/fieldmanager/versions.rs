//! Objects in the other versions in which somebody owns fields.

use std::sync::Arc;

use serde_json::Value;

use crate::schema::Schema;

/// What a kind's objects are in its other versions.
pub trait Versions: Sync {
    /// The object in another version.
    ///
    /// # Errors
    /// Why it is not to be had.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Versioned, VersionFault>;
}

/// An object in another version.
#[derive(Debug, Clone)]
pub struct Versioned {
    /// The object.
    pub object: Value,
    /// The schema of the version.
    pub schema: Arc<Schema>,
}

/// Why there is no object in another version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionFault {
    /// The kind has no such version: what was owned in it is nobody's.
    Missing,
    /// Somebody has to be asked first: what was computed is void, and to be done again then.
    Unknown,
    /// It cannot be converted.
    Failed(String),
}

impl VersionFault {
    /// The same fault, with what was being done.
    pub(super) fn when(self, what: &str) -> Self {
        match self {
            Self::Failed(why) => Self::Failed(format!("{what}: {why}")),
            other @ (Self::Missing | Self::Unknown) => other,
        }
    }
}

/// The versions of a kind that has only one.
#[derive(Debug, Clone, Copy)]
pub struct OneVersion;

impl Versions for OneVersion {
    fn convert(&self, _object: &Value, _api_version: &str) -> Result<Versioned, VersionFault> {
        Err(VersionFault::Missing)
    }
}

#[cfg(test)]
mod tests;
