//! Payloads of UC that are lent. Nobody acknowledges them, so that a request is complete when its memory is read no more: when its packets
//! have come back, as they do when the other end of a ring has executed them.
//!
//! They come back in no certain order, so what leaves is counted in loans, one after the other: a request is complete when the loan that its
//! last packet was in has come back whole, and those before. A loan ends with a poll.

use crate::lend::Account;
use memory::HostMemory;

/// Loans that may be out at a time, and the one that is made.
const LOANS: usize = 8;

/// With so many packets a loan is ended though others are out: few of them hold all packets of a window.
const ENOUGH: u32 = 32;

#[derive(Debug)]
pub(crate) struct Loans {
    /// By number.
    accounts: [Account; LOANS],
    /// The one that is made.
    open: u64,
    /// The oldest that may be out.
    oldest: u64,
    /// Packets in the open one.
    packets: u32,
    /// Something was lent since somebody asked.
    news: bool,
    /// Memory waits for one of them.
    awaited: bool,
}

impl Loans {
    pub fn new(memory: &HostMemory) -> Loans {
        let accounts = std::array::from_fn(|_| Account::new(memory));
        Loans { accounts, open: 0, oldest: 0, packets: 0, news: false, awaited: false }
    }

    /// Where the next packet is to be counted.
    #[inline]
    pub fn add(&mut self) -> &mut Account {
        self.packets += 1;
        self.news = true;
        &mut self.accounts[place(self.open)]
    }

    /// The number of the open loan, if packets came to it since the last question.
    #[inline]
    pub fn take_news(&mut self) -> Option<u64> {
        std::mem::take(&mut self.news).then_some(self.open)
    }

    /// Something is lent.
    #[inline]
    pub fn is_out(&self) -> bool {
        self.oldest < self.open || self.packets > 0
    }

    /// Between polls: ends the open loan, and looks which have come back. All up to the one that it says, if that is news.
    #[inline]
    pub fn come_back(&mut self) -> Option<u64> {
        if self.is_out() { self.look() } else { None }
    }

    fn look(&mut self) -> Option<u64> {
        let out = self.open - self.oldest;
        let has_place = out + 1 < LOANS as u64;
        if (self.packets >= ENOUGH && has_place) || (self.packets > 0 && out == 0) {
            self.open += 1;
            self.packets = 0;
        }
        let before = self.oldest;
        while self.oldest < self.open && self.accounts[place(self.oldest)].is_home() {
            self.oldest += 1;
        }
        (self.oldest > before).then(|| self.oldest - 1)
    }

    /// Memory that was withdrawn waits for some that have not come back.
    #[inline]
    pub fn is_awaited(&self) -> bool {
        self.awaited
    }

    /// Lets go of withdrawn memory, as far as nothing is out.
    pub fn settle(&mut self) {
        let settled = self.accounts.iter_mut().map(Account::try_settle).filter(|settled| *settled).count();
        self.awaited = settled < LOANS;
    }
}

/// A loan's account. Those that may be out have different ones.
fn place(loan: u64) -> usize {
    (loan % LOANS as u64) as usize
}
