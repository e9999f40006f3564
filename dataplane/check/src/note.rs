//! What is allowed, and worth knowing: losses and their repair, and habits of a sender. Notes are counted; they never fail a
//! capture.

/// Variants with their ids and words, and the list of all, from one table.
macro_rules! notes {
    ($($variant:ident = $id:literal, $words:literal;)*) => {
        /// Something that is no fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Note {
            $(#[doc = $words] $variant,)*
        }

        impl Note {
            /// Every note, in the order of their numbers (`as usize`).
            pub const ALL: &'static [Note] = &[$(Note::$variant,)*];

            /// Its short name, for machines.
            pub const fn id(self) -> &'static str {
                match self { $(Note::$variant => $id,)* }
            }

            /// What it means.
            pub const fn words(self) -> &'static str {
                match self { $(Note::$variant => $words,)* }
            }
        }
    };
}

notes! {
    Retransmission = "retransmission", "requests that were sent again";
    Duplicate = "duplicate", "requests that the network doubled: the same frame to the last bit, and nothing that asks for it";
    Missing = "missing", "places where requests are missing: lost before they could be captured";
    SequenceNak = "sequence-nak", "NAKs for a PSN out of sequence";
    RnrNak = "rnr-nak", "NAKs because no receive was posted";
    FatalNak = "fatal-nak", "NAKs that end a connection";
    Damaged = "damaged", "broken frames, taken as lost";
    NewEpoch = "new-epoch", "QP numbers that were used again with other PSNs";
    SentIntoRnrWait = "sent-into-rnr-wait", "new requests behind one that waits for a receive (Linux rxe does so; they are refused as out of sequence)";
    ErrorIsOperational = "operational-nak", "NAKs remote operational error for a SEND (Linux 6.1 rxe says so of one that is too long, others say invalid request)";
    RefusedInvalidate = "refused-invalidate", "ACKs of a SEND with invalidate that do not count it (Linux rxe acknowledges one that it refuses, and fails)";
    NotDontFragment = "no-df", "IPv4 packets without DF";
    SourcePort = "source-port", "UDP source ports below 0xc000, which is only a convention";
    Unpaired = "unpaired", "responses whose requests cannot be told";
    TooMany = "too-many-directions", "frames of connections beyond the number that is followed";
}

impl Note {
    /// How many there are.
    pub const COUNT: usize = Note::ALL.len();
}
