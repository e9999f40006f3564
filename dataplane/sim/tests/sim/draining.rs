//! SQD in the middle of traffic: started messages finish, the event tells when, and RTS goes on with the rest.

use crate::support::*;
use engine::event::EventSource;
use engine::{AsyncEvent, EventKind, QpAttr, QpAttrMask, QpState, QpType};
use sim::{Faults, Options, Rate, Traffic, assert_silent, for_each_seed};

#[test]
fn a_drain_in_full_flow_and_on_again() {
    for loss in [0, 3] {
        for_each_seed(8, |seed| {
            let (mut world, a, b) = two(seed);
            world.set_faults(Faults { loss: Rate::percent(loss), ..Faults::default() });
            let options = Options::default();
            let (qa, qb) = world.connect(QpType::Rc, a, b, &options);
            let traffic = Traffic::post(&mut world, qa, qb, &options, &rc_mix(80));
            assert!(world.run_for(2_000 + 1_000 * seed).is_err(), "there is more to do");
            let attr = QpAttr { state: QpState::Sqd, notify_drained: true, ..QpAttr::default() };
            world.modify(qa, &attr, QpAttrMask::STATE | QpAttrMask::EN_SQD_ASYNC_NOTIFY).unwrap();
            world.run().unwrap();
            let drained = AsyncEvent { kind: EventKind::SqDrained, source: EventSource::Qp(world.qpn(qa)) };
            let told = world.events(a);
            assert_eq!(told.iter().filter(|&&event| event == drained).count(), 1, "{told:?}");
            assert_silent(&mut world);

            let attr = QpAttr { state: QpState::Rts, ..QpAttr::default() };
            world.modify(qa, &attr, QpAttrMask::STATE).unwrap();
            world.run().unwrap();
            traffic.assert_all_done(&world);
            assert_silent(&mut world);
        });
    }
}
