//! Fast tests without a cluster: the pure parts, and the reconcile against a scripted API server.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::match_wildcard_for_single_variants,
    clippy::unnecessary_wraps,
    clippy::wildcard_enum_match_arm,
    reason = "tests"
)]

mod cache;
mod children;
mod clean_up;
mod cli;
mod definition;
mod events;
mod manifests;
mod ownership;
mod plan;
mod properties;
mod reconcile;
mod status;
mod support;
mod validate;
mod work;
