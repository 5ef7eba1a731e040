//! The custom resources: types, schema, validation rules, printer columns. No client in here.

pub mod crd;
pub mod simpleapp;
