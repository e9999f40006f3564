//! The impairment stage of one endpoint: what its plan does to frames that leave and to frames that arrive.

use engine::Nanos;
use impair::{Counters, Direction, Plan, Shelf, Stage};
use wire::{EthernetHeader, Frame};

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
        let to = EthernetHeader::parse(&frame).map(|ethernet| ethernet.dmac);
        let mut passed = Passed { frames: Vec::new(), fate: "", harmed: true };
        let len = verdict.apply(&mut frame);
        let cut = len < frame.len();
        frame.truncate(len);
        // Nothing protects the Ethernet header: a frame may be whole and go to nobody.
        let still_to = EthernetHeader::parse(&frame).map(|ethernet| ethernet.dmac);
        let whole = !cut && to == still_to && is_right(&frame);
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

/// A frame that its receiver will take for what was sent.
fn is_right(frame: &[u8]) -> bool {
    Frame::parse(frame, frame.len()).is_ok_and(|parsed| parsed.verify_icrc(frame, [frame]).is_ok())
}
