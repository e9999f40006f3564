//! Tests of connection management through its public API, one scenario per file, in one binary so that they link once.

mod connects;
mod sidr;
mod sim;
mod support;
