//! What the tests share.

pub(crate) mod fixtures;
pub(crate) mod script;
pub(crate) mod world;

/// Compares with a file in `snapshots/` at the root of the repository.
macro_rules! assert_snapshot {
    ($name:expr, $value:expr) => {
        insta::with_settings!({
            snapshot_path => concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots"),
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            insta::assert_snapshot!($name, $value);
        });
    };
}
pub(crate) use assert_snapshot;
