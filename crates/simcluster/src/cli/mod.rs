//! The program's arguments: what was typed (`arguments`), and what it means (`config`, `controllers`,
//! `admission`), checked once and without a process.

mod admission;
pub(crate) mod arguments;
pub(crate) mod config;
mod controllers;

#[cfg(test)]
mod tests;
