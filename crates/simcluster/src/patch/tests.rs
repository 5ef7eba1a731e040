//! Tests of patches.
