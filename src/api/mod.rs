//! The custom resources: types, schema, validation rules, printer columns. No client in here.

pub mod crd;
mod schema;
pub mod simpleapp;
