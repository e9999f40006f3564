//! Nodes, the network between them, and the story that the dice tell.

use super::Outcomes;
use super::dice::Dice;
use super::node::{Node, Stage, gid};
use super::plan::{Answer, CALM_AT, HAUNT_NS, JUDGED_AT, Weather};
use crate::support::{MS, path};
use cm::{ConnId, SidrId, Transmit, Usage};
use std::collections::BTreeMap;
use wire::mad::CmMad;
use wire::{Gid, Qpn};

/// How often data is sent again, and how soon.
const DATA_TRIES: u32 = 8;
const DATA_INTERVAL_NS: u64 = 200 * MS;

#[derive(Debug)]
enum Happening {
    Mad {
        from: usize,
        bytes: Box<[u8; 256]>,
    },
    Data {
        from: usize,
        to_qpn: Qpn,
        from_qpn: Qpn,
        conn: ConnId,
    },
    Ack {
        conn: ConnId,
    },
    /// Data of a connection was not acknowledged so far.
    Probe {
        conn: ConnId,
        tries: u32,
    },
    Connect {
        to: usize,
    },
    Question {
        to: usize,
    },
    Reply {
        sidr: SidrId,
        yes: bool,
    },
    GiveUpQuestion {
        sidr: SidrId,
    },
    Accept {
        conn: ConnId,
    },
    AskForTime {
        conn: ConnId,
    },
    Reject {
        conn: ConnId,
    },
    Destroy {
        conn: ConnId,
    },
    Disconnect {
        conn: ConnId,
    },
    Die,
    Boot {
        first_qpn: u32,
    },
}

pub struct World {
    dice: Dice,
    weather: Weather,
    now: u64,
    nodes: Vec<Node>,
    boots: u64,
    /// What is to come, and at which node.
    future: BTreeMap<(u64, u64), (usize, Happening)>,
    count: u64,
    /// Data that was acknowledged since it was last sent.
    acked: BTreeMap<(usize, ConnId), bool>,
    /// What both ends mean to do, by the active end's address and QP: in fair weather, two times yes are a connection.
    wishes: BTreeMap<(Gid, Qpn), (bool, Option<bool>)>,
    fair: bool,
    trace: bool,
    pub outcomes: Outcomes,
}

impl World {
    pub fn new(seed: u64, trace: bool) -> World {
        let mut dice = Dice::new(seed);
        let weather = Weather::new(&mut dice);
        let count = 2 + dice.below(2) as usize;
        let fair = weather.is_fair();
        let nodes = (0..count).map(|number| Node::new(number, seed, 100 * (number as u32 + 1))).collect();
        let mut world = World {
            dice,
            weather,
            now: 0,
            nodes,
            boots: seed,
            future: BTreeMap::new(),
            count: 0,
            acked: BTreeMap::new(),
            wishes: BTreeMap::new(),
            fair,
            trace,
            outcomes: Outcomes::default(),
        };
        world.write_story();
        world
    }

    fn write_story(&mut self) {
        for _ in 0..1 + self.dice.below(8) {
            let (node, to) = (self.any_node(), self.any_node());
            let at = self.dice.below(3_000) * MS;
            self.expect(at, node, Happening::Connect { to });
        }
        for _ in 0..self.dice.below(3) {
            let (node, to) = (self.any_node(), self.any_node());
            let at = self.dice.below(3_000) * MS;
            self.expect(at, node, Happening::Question { to });
        }
        if self.dice.chance(15) {
            self.fair = false;
            let (node, at) = (self.any_node(), self.dice.below(4_000) * MS);
            self.expect(at, node, Happening::Die);
            if self.dice.chance(60) {
                // With the same QPNs again, or with others.
                let first_qpn = if self.dice.chance(50) { 100 * (node as u32 + 1) } else { 5_000 };
                let at = at + self.dice.below(3_000) * MS;
                self.expect(at, node, Happening::Boot { first_qpn });
            }
        }
    }

    fn any_node(&mut self) -> usize {
        self.dice.below(self.nodes.len() as u64) as usize
    }

    fn expect(&mut self, at: u64, node: usize, happening: Happening) {
        self.count += 1;
        self.future.insert((at, self.count), (node, happening));
    }

    /// The whole story, and its judgement.
    pub fn run(&mut self) {
        self.run_until(CALM_AT);
        self.weather = Weather::CALM;
        self.run_until(JUDGED_AT);
        self.judge();
        for number in 0..self.nodes.len() {
            let conns: Vec<_> = self.nodes[number].lives.keys().copied().collect();
            conns.into_iter().for_each(|conn| self.happen(number, Happening::Destroy { conn }));
        }
        self.run_until(u64::MAX);
        for node in self.nodes.iter().filter(|node| node.alive) {
            assert_eq!(node.cm.usage(), Usage { listeners: 1, ..Usage::default() }, "node {}", node.number);
            assert!(node.lives.is_empty(), "node {}: {:?}", node.number, node.lives);
            assert!(node.questions.is_empty(), "node {}: {:?}", node.number, node.questions);
        }
    }

    fn run_until(&mut self, end: u64) {
        loop {
            let timer = (0..self.nodes.len())
                .filter(|&number| self.nodes[number].alive)
                .filter_map(|number| self.nodes[number].cm.next_timeout().map(|at| (at, number)))
                .min();
            let next = self.future.keys().next().copied();
            match (timer, next) {
                (Some((at, number)), next) if next.is_none_or(|(then, _)| at < then) => {
                    if at > end {
                        break;
                    }
                    self.advance(at);
                    self.nodes[number].cm.on_timeout(self.now);
                    self.drain(number);
                }
                (_, Some(key)) if key.0 <= end => {
                    self.advance(key.0);
                    let (number, happening) = self.future.remove(&key).expect("it is the first");
                    self.happen(number, happening);
                }
                _ => break,
            }
        }
        if end != u64::MAX {
            self.advance(end);
        }
    }

    fn advance(&mut self, at: u64) {
        self.now = self.now.max(at);
        let now = self.now;
        self.nodes.iter().filter(|node| node.alive).for_each(|node| node.check_due(now));
    }

    fn happen(&mut self, number: usize, happening: Happening) {
        if self.trace {
            match &happening {
                Happening::Mad { from, bytes } => {
                    self.tell(number, &format!("from {from}: {:?}", CmMad::parse(&bytes[..])))
                }
                other => self.tell(number, &format!("{other:?}")),
            }
        }
        let (now, calm) = (self.now, self.now >= CALM_AT);
        if let Happening::Boot { first_qpn } = happening {
            self.boots += 0x1_0000_0000;
            self.nodes[number] = Node::new(number, self.boots, first_qpn);
            return;
        }
        if !self.nodes[number].alive {
            return;
        }
        let depths = (self.dice.below(5) as u8, self.dice.below(5) as u8);
        let node = &mut self.nodes[number];
        match happening {
            Happening::Mad { from, bytes } => node.cm.on_mad(now, &path(gid(number), gid(from)), &bytes[..]),
            Happening::Connect { to } => {
                self.outcomes.asked += 1;
                let (conn, qpn) = node.connect(now, to, depths);
                self.wishes.insert((gid(number), qpn), (true, None));
                self.maybe_later(number, conn);
            }
            Happening::Accept { conn } => {
                node.accept(now, conn, depths);
                if node.lives.get(&conn).is_some_and(|life| life.stage == Stage::Up) {
                    self.outcomes.connected += 1;
                    self.probe(number, conn, DATA_TRIES);
                }
            }
            Happening::Question { to } => {
                let sidr = node.question(now, to);
                if self.dice.chance(10) {
                    let at = now + self.dice.below(1_000) * MS;
                    self.expect(at, number, Happening::GiveUpQuestion { sidr });
                }
            }
            Happening::Reply { sidr, yes } => node.reply(now, sidr, yes),
            Happening::GiveUpQuestion { sidr } => node.give_up_question(now, sidr),
            Happening::AskForTime { conn } => node.ask_for_time(now, conn),
            Happening::Reject { conn } => node.reject(now, conn),
            Happening::Destroy { conn } => node.destroy(now, conn),
            Happening::Disconnect { conn } => node.disconnect(now, conn),
            Happening::Die => {
                self.outcomes.died += 1;
                node.alive = false;
                return;
            }
            Happening::Data { from, to_qpn, from_qpn, conn } => {
                if node.on_data(now, to_qpn, from_qpn) {
                    self.post(number, from, || Happening::Ack { conn });
                }
            }
            Happening::Ack { conn } => drop(self.acked.insert((number, conn), true)),
            Happening::Probe { conn, tries } => self.probe(number, conn, tries),
            Happening::Boot { .. } => unreachable!("handled above"),
        }
        self.drain(number);
        assert!(!calm || self.future.len() < 10_000, "it never ends");
    }

    fn tell(&self, number: usize, text: &str) {
        println!("{:>9.3} ms  node {number}  {text}", self.now as f64 / MS as f64);
    }

    /// Sends data of a connection that is up, until it is acknowledged; then again after a while. Without an acknowledgement
    /// the QP fails, and the application disconnects.
    fn probe(&mut self, number: usize, conn: ConnId, tries: u32) {
        let Some(life) = self.nodes[number].lives.get(&conn).filter(|life| life.stage == Stage::Up) else {
            return;
        };
        let (plan, from_qpn) = (life.plan.expect("it is up"), life.qpn.expect("it is up"));
        let acked = self.acked.insert((number, conn), false) == Some(true);
        if acked && tries < DATA_TRIES {
            let at = self.now + 500 * MS;
            if at < JUDGED_AT {
                self.expect(at, number, Happening::Probe { conn, tries: DATA_TRIES });
            }
            return;
        }
        if tries == 0 {
            self.nodes[number].disconnect(self.now, conn);
            self.drain(number);
            return;
        }
        let to = (0..self.nodes.len()).find(|&to| gid(to) == plan.path.remote).expect("a node");
        let to_qpn = plan.dest_qpn;
        self.post(number, to, || Happening::Data { from: number, to_qpn, from_qpn, conn });
        let at = self.now + DATA_INTERVAL_NS;
        if at < JUDGED_AT {
            self.expect(at, number, Happening::Probe { conn, tries: tries - 1 });
        }
    }

    /// Puts something on the network.
    fn post(&mut self, from: usize, to: usize, make: impl Fn() -> Happening) {
        let copies = 1 + u64::from(self.dice.chance(self.weather.repeat));
        for _ in 0..copies {
            if self.dice.chance(self.weather.loss) {
                self.outcomes.lost += 1;
                if self.trace {
                    self.tell(from, &format!("lost: {:?}", make()));
                }
                continue;
            }
            let at = self.now + 1 + self.dice.below(self.weather.delay_ns);
            self.expect(at, to, make());
            if self.dice.chance(self.weather.haunt) {
                let later = at + self.dice.below(HAUNT_NS);
                self.expect(later, to, make());
            }
        }
    }

    /// Takes all that a node has to say.
    fn drain(&mut self, number: usize) {
        let mut sent = 0;
        while let Some(Transmit { path, mad, .. }) = self.nodes[number].cm.poll_transmit() {
            sent += 1;
            let to = (0..self.nodes.len()).find(|&to| gid(to) == path.remote).expect("a node");
            self.post(number, to, || Happening::Mad { from: number, bytes: Box::new(mad) });
        }
        // What came and what was due at one time: a REJ and a DREQ at most for each, and never a storm.
        assert!(sent <= 20, "{sent} messages at once");
        while let Some(event) = self.nodes[number].cm.poll_event() {
            if self.trace {
                self.tell(number, &format!("told: {event:?}"));
            }
            let now = self.now;
            let established = matches!(event, cm::Event::Established { .. });
            if let Some(sidr) = event.sidr() {
                if self.nodes[number].on_question_event(now, &event) {
                    self.answer_question(number, sidr);
                }
                continue;
            }
            if let Some(conn) = self.nodes[number].on_event(now, &event) {
                self.answer(number, conn);
            } else if let (true, Some(conn)) = (established, event.conn()) {
                self.probe(number, conn, DATA_TRIES);
            }
        }
    }

    fn answer_question(&mut self, number: usize, sidr: SidrId) {
        let at = self.now + self.dice.one_of(&[0, 0, 30, 1_500]) * MS;
        match self.dice.below(10) {
            0 => {}
            1 => self.expect(at, number, Happening::GiveUpQuestion { sidr }),
            2..4 => self.expect(at, number, Happening::Reply { sidr, yes: false }),
            _ => self.expect(at, number, Happening::Reply { sidr, yes: true }),
        }
    }

    /// An end means to stay connected, or not.
    fn wish(&mut self, number: usize, conn: ConnId, yes: bool) {
        let Some(life) = self.nodes[number].lives.get(&conn) else { return };
        if let Some((active, passive)) = self.wishes.get_mut(&life.asker) {
            match life.active {
                true => *active = yes,
                false => *passive = Some(yes),
            }
        }
    }

    fn answer(&mut self, number: usize, conn: ConnId) {
        let now = self.now;
        let answer = Answer::new(&mut self.dice);
        let active = self.nodes[number].lives[&conn].active;
        if !active || !answer.is_yes() {
            self.wish(number, conn, answer.is_yes());
        }
        match answer {
            Answer::Yes(after) => self.expect(now + after, number, Happening::Accept { conn }),
            Answer::AskForTime(after) => {
                self.expect(now, number, Happening::AskForTime { conn });
                self.expect(now + after, number, Happening::Accept { conn });
            }
            Answer::No(after) => self.expect(now + after, number, Happening::Reject { conn }),
            Answer::Destroy(after) => self.expect(now + after, number, Happening::Destroy { conn }),
            Answer::Never => {}
        }
        self.maybe_later(number, conn);
    }

    /// An end, perhaps: at any time, in any state.
    fn maybe_later(&mut self, number: usize, conn: ConnId) {
        let at = self.now + self.dice.below(4_000) * MS;
        let what = self.dice.below(10);
        if what < 2 {
            self.wish(number, conn, false);
        }
        match what {
            0 => self.expect(at, number, Happening::Destroy { conn }),
            1 => self.expect(at, number, Happening::Disconnect { conn }),
            _ => {}
        }
    }

    /// Every connection that is up has its other end up, and both mean the same.
    fn judge(&mut self) {
        for ((remote, qpn), wish) in self.wishes.iter().filter(|_| self.fair) {
            if *wish != (true, Some(true)) {
                continue;
            }
            let node = self.nodes.iter().find(|node| gid(node.number) == *remote).expect("a node");
            let up = node
                .lives
                .values()
                .any(|life| life.active && life.qpn == Some(*qpn) && life.stage == Stage::Up);
            assert!(up, "{remote} {qpn}: both ends said yes, and they are not connected");
            self.outcomes.fair += 1;
        }
        for node in self.nodes.iter().filter(|node| node.alive) {
            for (conn, life) in &node.lives {
                let number = node.number;
                if life.stage != Stage::Up {
                    // Nothing new was begun for longer than anybody waits.
                    assert_eq!(life.stage, Stage::Over, "node {number}: {conn:?} {life:?}");
                    continue;
                }
                let plan = life.plan.expect("it is up");
                let other =
                    self.nodes.iter().find(|other| gid(other.number) == plan.path.remote).expect("a node");
                assert!(other.alive, "node {number}: {conn:?} is up with a dead node");
                let theirs = other.lives.values().find(|theirs| theirs.qpn == Some(plan.dest_qpn));
                let theirs = theirs.unwrap_or_else(|| panic!("node {number}: {conn:?} is half: {life:?}"));
                assert_eq!(theirs.stage, Stage::Up, "node {number}: {conn:?} is half: {life:?} {theirs:?}");
                let back = theirs.plan.expect("it is up");
                assert_eq!((Some(back.dest_qpn), back.path.remote), (life.qpn, gid(number)));
                assert_eq!((plan.sq_psn, plan.rq_psn), (back.rq_psn, back.sq_psn));
                assert_eq!((plan.mtu, plan.max_rd_atomic), (back.mtu, back.max_dest_rd_atomic));
                assert_eq!(plan.max_dest_rd_atomic, back.max_rd_atomic);
            }
        }
    }
}
