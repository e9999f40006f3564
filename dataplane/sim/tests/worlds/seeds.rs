//! Two thousand worlds: nothing is wrong in any of them, and together they meet everything there is to meet.

use engine::Counter;
use sim::plan::{Fault, Kind};
use sim::{Campaign, Choices, Totals};

/// `SIM_SEEDS=n` plays n seeds instead.
fn two_thousand() -> Totals {
    let count = std::env::var("SIM_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000);
    let campaign = Campaign { seeds: 0..count, choices: Choices::default(), jobs: 1 };
    campaign.run(|| false, |_, _| ())
}

#[test]
fn two_thousand_seeds_find_nothing_and_meet_everything() {
    let totals = two_thousand();
    for failed in totals.failed.iter().take(30) {
        eprintln!("rockhopper sim --seed {}: {}", failed.seed, failed.why);
    }
    assert_eq!(totals.failed.len(), 0, "of {} seeds", totals.seeds);
    let missed = missed(&totals);
    assert!(missed.is_empty(), "never happened: {missed:?}; what did: {:#?}", totals.stats);
}

/// What none of the worlds had of what they are there for.
fn missed(totals: &Totals) -> Vec<String> {
    let stats = &totals.stats;
    let mut wanted: Vec<String> = Vec::new();
    wanted.extend(Kind::ALL.map(|kind| format!("rc {}", kind.word())));
    wanted.extend(["send", "send_imm", "write", "write_imm"].map(|kind| format!("uc {kind}")));
    wanted.extend(["send", "send_imm"].map(|kind| format!("ud {kind}")));
    let of_xrc = [
        "send",
        "send_imm",
        "write",
        "write_imm",
        "read",
        "compare_swap",
        "fetch_add",
        "local_inv",
        "reg_mr",
    ];
    wanted.extend(of_xrc.map(|kind| format!("xrc {kind}")));
    wanted.extend(Fault::ALL.map(|fault| format!("fault {fault:?}")));
    let statuses = [
        "LocLenErr",
        "LocProtErr",
        "WrFlushErr",
        "RemInvReqErr",
        "RemAccessErr",
        "RemOpErr",
        "MwBindErr",
        "RetryExcErr",
        "RnrRetryExcErr",
    ];
    wanted.extend(statuses.map(|status| format!("status {status}")));
    let events = ["move", "drain", "give_up", "lose_source", "lose_target", "darkness"];
    wanted.extend(events.map(|event| format!("event {event}")));
    let signs = [
        "fenced",
        "inline",
        "unsignaled",
        "solicited",
        "reconnect",
        "read restarted in the middle",
        "atomic replayed",
        "through a window",
        "window bound anew",
        "window unbound",
        "srq receive",
        "xrc srq receive",
        "srq used by several",
        "srq limit reached",
        "last wqe reached",
    ];
    wanted.extend(signs.map(str::to_owned));
    let paths = [
        Counter::LocalAckTimeoutErr,
        Counter::RnrNakRetry,
        Counter::PacketSeqErr,
        Counter::ImpliedNakSeqErr,
        Counter::DuplicateRequest,
        Counter::RetryExceeded,
        Counter::RnrRetryExceeded,
    ];
    wanted.extend(paths.map(|counter| counter.name().to_owned()));
    let impairments = impair::Effect::ALL
        .iter()
        .filter(|effect| !matches!(effect, impair::Effect::NotHeld | impair::Effect::NotCopied));
    wanted.extend(impairments.map(|effect| effect.name().to_owned()));
    wanted.retain(|what| stats.times(what) == 0);
    wanted
}
