//! The checker against captures of Linux's software RoCE, and against the same captures with faults made in them.

mod anything;
mod captures;
mod combined;
mod dialogues;
mod edit;
mod faults;
mod files;
mod late;
mod long;
mod support;
mod traps;
