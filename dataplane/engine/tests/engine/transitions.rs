//! The full matrix of QP moves: type × from × to, against a snapshot. A change of behaviour shows in review as a change
//! of `data/transitions.txt`; the failing test prints the matrix to put there.

use engine::qp::rule;
use engine::{QpAttrMask, QpState, QpType};
use std::fmt::Write;

const ALL: [QpType; 5] = [QpType::Rc, QpType::Uc, QpType::Ud, QpType::XrcIni, QpType::XrcTgt];

#[test]
fn the_matrix_is_the_snapshot() {
    let mut matrix = String::new();
    for qp_type in ALL {
        for from in QpState::ALL {
            for to in QpState::ALL {
                writeln!(matrix, "{}", line(qp_type, from, to)).expect("a string takes all");
            }
        }
    }
    let snapshot = include_str!("data/transitions.txt");
    assert!(matrix == snapshot, "the matrix is now:\n{matrix}");
}

fn line(qp_type: QpType, from: QpState, to: QpState) -> String {
    let head = format!("{qp_type:?} {from:?} -> {to:?}:");
    match rule(qp_type, from, to) {
        None => format!("{head} no"),
        Some(rule) => format!("{head} R[{}] o[{}]", names(rule.required), names(rule.optional)),
    }
}

fn names(mask: QpAttrMask) -> String {
    mask.iter_names().map(|(name, _)| name).collect::<Vec<_>>().join(" ")
}

#[test]
fn no_move_takes_an_alternate_path_or_requires_what_it_also_offers() {
    for qp_type in ALL {
        for (from, to) in QpState::ALL.into_iter().flat_map(|from| QpState::ALL.map(|to| (from, to))) {
            let Some(rule) = rule(qp_type, from, to) else { continue };
            assert!(!(rule.required | rule.optional).contains(QpAttrMask::ALT_PATH));
            assert!((rule.required & rule.optional).is_empty(), "{qp_type:?} {from:?} -> {to:?}");
        }
    }
}
