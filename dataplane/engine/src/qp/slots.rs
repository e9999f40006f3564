//! The responder's READ and atomic slots: what a duplicate request is answered from.
