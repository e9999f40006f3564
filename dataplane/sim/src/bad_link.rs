//! The impairment stage of one endpoint: what its plan does to frames that leave and to frames that arrive.

use crate::endpoint::parse;
use engine::Nanos;
use impair::{Counters, Direction, Plan, Shelf, Stage};

/// What a stage made of one frame.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    /// What goes on now, in order.
    pub frames: Vec<Vec<u8>>,
    /// What happened to the frame, in words; empty when nothing did.
    pub fate: &'static str,
    /// It does not go on once, whole and in its turn.
    pub harmed: bool,
}

/// One endpoint's stage and the frames that it holds.
#[derive(Debug)]
pub(crate) struct BadLink {
    stage: Stage,
    leaving: Shelf<Vec<u8>>,
    arriving: Shelf<Vec<u8>>,
}

/// Frames that are held on one way.
const HELD: usize = 256;

impl BadLink {
    pub fn new(plan: &Plan, seed: u64) -> BadLink {
        let shelf = || Shelf::with_capacity(HELD);
        BadLink { stage: Stage::new(plan, seed), leaving: shelf(), arriving: shelf() }
    }

    fn shelf(&mut self, direction: Direction) -> &mut Shelf<Vec<u8>> {
        match direction {
            Direction::Tx => &mut self.leaving,
            Direction::Rx => &mut self.arriving,
        }
    }

    /// A frame goes this way.
    pub fn pass(&mut self, now: Nanos, direction: Direction, mut frame: Vec<u8>) -> Passed {
        let verdict = self.stage.decide(now, direction, &frame, frame.len());
        if verdict.is_pass() {
            self.shelf(direction).frame_passed(now);
            return self.behind(now, direction, Passed { frames: vec![frame], fate: "", harmed: false });
        }
        let copies = vec![frame.clone(); verdict.copies()];
        let mut passed = Passed { frames: Vec::new(), fate: "", harmed: true };
        let len = verdict.apply(&mut frame);
        let cut = len < frame.len();
        frame.truncate(len);
        // As its receiver sees it: the UDP checksum counts, which the iCRC does not cover. Links leave the Ethernet header alone.
        let whole = !cut && parse(&frame).is_ok();
        match verdict.hold() {
            _ if verdict.is_dropped() => passed.fate = "lost",
            Some(hold) => {
                passed.fate = if whole { "held" } else { "spoiled and held" };
                if let Err(frame) = self.shelf(direction).hold(now, hold, frame) {
                    passed.frames.push(frame);
                }
            }
            None => {
                passed.fate = match () {
                    () if cut => "cut",
                    () if !whole => "spoiled",
                    () if copies.is_empty() => "marked",
                    () => "doubled",
                };
                passed.harmed = passed.fate != "marked";
                passed.frames.push(frame);
            }
        }
        passed.frames.extend(copies);
        for _ in &passed.frames {
            self.shelf(direction).frame_passed(now);
        }
        self.behind(now, direction, passed)
    }

    /// Adds what has waited for the frames that passed.
    fn behind(&mut self, now: Nanos, direction: Direction, mut passed: Passed) -> Passed {
        passed.frames.extend(std::iter::from_fn(|| self.shelf(direction).pop(now)));
        passed
    }

    /// What has waited until now.
    pub fn due(&mut self, now: Nanos, direction: Direction) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.shelf(direction).pop(now)).collect()
    }

    /// When something is due next.
    pub fn next_due(&self) -> Option<Nanos> {
        [self.leaving.next_due(), self.arriving.next_due()].into_iter().flatten().min()
    }

    pub fn counters(&self) -> &Counters {
        self.stage.counters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Addressing, Bth, ExtHeaders, HeaderTemplate, Opcode, Psn, Qpn, RoceVersion, build_frame};

    /// Behind the Ethernet header and 20 bytes of IPv4.
    const UDP_CHECKSUM: std::ops::Range<usize> = 40..42;

    fn uc_send() -> Vec<u8> {
        let way = Addressing {
            version: RoceVersion::V2,
            smac: "02:00:00:00:00:0a".parse().unwrap(),
            dmac: "02:00:00:00:00:0b".parse().unwrap(),
            vlan: None,
            src: "192.0.2.1".parse().unwrap(),
            dst: "192.0.2.2".parse().unwrap(),
            traffic_class: 0,
            flow_label: 0,
            hop_limit: 64,
            udp_sport: 0xC123,
        };
        let mut frame = Vec::new();
        let bth = Bth::new(Opcode(0x24), Qpn::new(2), Psn::new(7));
        build_frame(&HeaderTemplate::new(&way).unwrap(), &bth, &ExtHeaders::EMPTY, 1, &[0x5A; 8], &mut frame);
        frame
    }

    /// No iCRC covers the UDP checksum, and yet a frame with a wrong one reaches nobody.
    #[test]
    fn a_broken_udp_checksum_is_harm_though_the_icrc_does_not_cover_it() {
        let plan: Plan = "corrupt 100%".parse().unwrap();
        let (sent, mut spoiled, mut marked) = (uc_send(), [false; 2], false);
        for seed in 0..2_000 {
            let passed = BadLink::new(&plan, seed).pass(0, Direction::Tx, sent.clone());
            let [frame] = &passed.frames[..] else { panic!("one frame, however broken") };
            for (n, at) in UDP_CHECKSUM.enumerate().filter(|&(_, at)| frame[at] != sent[at]) {
                assert!(passed.harmed, "seed {seed}: byte {at}");
                spoiled[n] = true;
            }
            marked |= !passed.harmed;
        }
        assert_eq!(spoiled, [true; 2], "each of its bytes broke once");
        assert!(marked, "traffic class and hop limit may change on the way");
    }
}
