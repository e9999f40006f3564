//! What links do, drawn: a plan in the words of the impairment stage.

use super::random::Draw;

/// Nothing, one thing, or several. Rates are low enough that eight tries in a row do not fail by bad luck.
pub(super) fn random(draw: &mut Draw) -> String {
    let count = draw.pick(&[0, 0, 1, 1, 2, 3]);
    let clauses: Vec<String> = (0..count).map(|_| clause(draw)).collect();
    clauses.join("; ")
}

fn clause(draw: &mut Draw) -> String {
    let what = match draw.below(10) {
        0..=3 => "drop".to_owned(),
        4 => "duplicate".to_owned(),
        5 | 6 => format!("reorder {}", draw.between(1, 6)),
        7 => match draw.below(2) {
            0 => "corrupt".to_owned(),
            _ => "truncate".to_owned(),
        },
        8 => "ce".to_owned(),
        _ => format!("delay {}us..{}us", draw.between(1, 5), draw.pick(&[10, 100, 3_000])),
    };
    // The fourth of some operation's packets rather than any, now and then.
    let packets = draw.pick(&[
        "",
        "",
        "",
        " opcode=rc_acknowledge",
        " opcode=rc_read_response_middle",
        " opcode=rc_atomic_acknowledge",
    ]);
    let way = draw.pick(&["", "", " tx", " rx"]);
    let rate = match (packets, draw.below(3)) {
        ("", 0) => format!(" every {}", draw.between(15, 60)),
        ("", _) => format!(" {}%", draw.between(1, 4)),
        (_, 0) => format!(" every {}", draw.between(3, 9)),
        (_, _) => format!(" {}%", draw.between(5, 20)),
    };
    format!("{what}{rate}{packets}{way}")
}
