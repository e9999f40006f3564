//! Whole worlds from seeds.

mod plans;
mod seeds;
