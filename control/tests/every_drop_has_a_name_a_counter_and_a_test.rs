//! Three lists that have to be equal: the reasons to discard a packet and the faults of requests as the sources define them, the
//! counters that a running endpoint publishes, and the tests that provoke them.
//!
//! A variant that is added without being listed, published and named by a test fails here.

use engine::fault::Fault;
use engine::{DropReason, QpType};
use rockhopper::{Endpoint, RingPair};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use wire::FrameError;

type Names = BTreeSet<String>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Variants of an enum as its source has them: what begins a line of its block with a capital letter.
fn variants(file: &str, begin: &str) -> Names {
    let text = std::fs::read_to_string(root().join(file)).unwrap();
    let block = text.split_once(begin).unwrap_or_else(|| panic!("{file} has no {begin:?}")).1;
    let mut names = Names::new();
    for line in block.lines().map(str::trim) {
        if line == "}" {
            return names;
        }
        let name: String = line.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
        if name.starts_with(|c: char| c.is_ascii_uppercase()) {
            names.insert(name);
        }
    }
    panic!("{file}: the block of {begin:?} does not end")
}

/// All test sources, joined.
fn tests() -> String {
    let mut text = String::new();
    let mut folders = vec![root().join("dataplane"), root().join("control/tests")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_test = path.components().any(|part| part.as_os_str().to_string_lossy().ends_with("tests"));
            // This file provokes nothing.
            let other = path.file_name() != Path::new(file!()).file_name();
            if path.is_dir() {
                folders.push(path);
            } else if is_test && other && path.extension().is_some_and(|ext| ext == "rs") {
                text.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    text
}

/// Variants of an enum that tests name.
fn named_by_tests(tests: &str, name: &str) -> Names {
    let prefix = format!("{name}::");
    let ends = |before: Option<char>| !before.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    tests
        .match_indices(&prefix)
        .filter(|(at, _)| ends(tests[..*at].chars().next_back()))
        .map(|(at, _)| tests[at + prefix.len()..].chars().take_while(char::is_ascii_alphanumeric).collect())
        .collect()
}

fn listed(all: &[impl Debug]) -> Names {
    all.iter().map(|variant| format!("{variant:?}")).collect()
}

#[track_caller]
fn equal(what: &str, defined: &Names, listed: &Names, tests: &str) {
    assert!(defined.len() > 5, "{what}: {defined:?}");
    assert_eq!(defined, listed, "{what}: the source's variants, and those of ALL");
    let tested = named_by_tests(tests, what);
    let untested: Vec<_> = defined.difference(&tested).collect();
    assert!(untested.is_empty(), "{what}: no test names {untested:?}: provoke it in one");
}

#[test]
fn variants_lists_and_tests_are_equal() {
    let tests = tests();
    let defined = variants("dataplane/engine/src/counters.rs", "pub enum DropReason {");
    equal("DropReason", &defined, &listed(DropReason::ALL), &tests);
    let defined = variants("dataplane/engine/src/fault.rs", "pub enum Fault {");
    equal("Fault", &defined, &listed(&Fault::ALL), &tests);
    let defined = variants("dataplane/wire/src/frame/error.rs", "\nframe_errors! {");
    equal("FrameError", &defined, &listed(FrameError::ALL), &tests);
    let defined = variants("dataplane/worker/src/counters.rs", "pub enum Drop {");
    equal("Drop", &defined, &listed(worker::Drop::ALL), &tests);
    let defined = variants("dataplane/impair/src/counters.rs", "pub enum Effect {");
    equal("Effect", &defined, &listed(impair::Effect::ALL), &tests);
}

/// What an endpoint publishes is what there is: no reason without its counter, no counter without its reason.
#[test]
fn every_reason_is_published_and_every_published_drop_has_a_reason() {
    let (end, _other) = Endpoint::ring_pair(&RingPair::default()).unwrap();
    let published = end.device(0).unwrap().stats().roce;
    let names = (FrameError::ALL.iter().map(|reason| reason.name()))
        .chain(DropReason::ALL.iter().map(|reason| reason.name()))
        .chain(worker::Drop::ALL.iter().map(|reason| reason.name()));
    let mut reasons = Names::new();
    for name in names {
        assert!(reasons.insert(name.to_owned()), "two reasons are called {name}");
    }
    let drops = published.keys().filter(|name| name.starts_with("drop_") || name.starts_with("not_roce_"));
    assert_eq!(drops.cloned().collect::<Names>(), reasons);
    for fault in Fault::ALL {
        for qp_type in [QpType::Rc, QpType::Uc, QpType::Ud] {
            let row = fault.row(qp_type);
            assert!(
                published.contains_key(row.counter.name()) && published.contains_key(row.drop.name()),
                "{fault:?}"
            );
        }
    }
    for effect in impair::Effect::ALL {
        assert!(published.contains_key(effect.name()), "{effect:?}");
    }
}
