//! Tests of field management.
