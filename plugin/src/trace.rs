//! Events as a trace in XLA's form, a serialized XSpace (tsl/profiler/protobuf/xplane.proto): a plane per device, on
//! it a line per thread. It knows nothing of what the events are.

use std::collections::{BTreeMap, BTreeSet};

use act_hlo::proto::{Field, Message};

/// What planes of devices that XLA does not know are called by; viewers show them as devices.
const DEVICE_PREFIX: &str = "/device:CUSTOM:";

const PICOSECONDS: u64 = 1_000;

/// Something that took time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) device: String,
    pub(crate) thread: i64,
    pub(crate) name: String,
    /// Nanoseconds since 1970.
    pub(crate) begin: u64,
    /// Nanoseconds.
    pub(crate) duration: u64,
    pub(crate) numbers: Vec<(&'static str, u64)>,
}

/// The events as a serialized XSpace; empty bytes for none.
pub(crate) fn serialize(events: &[Event]) -> Vec<u8> {
    let devices: BTreeSet<&str> = events.iter().map(|event| event.device.as_str()).collect();
    let mut space = Message::default();
    for (number, device) in devices.into_iter().enumerate() {
        let of_device: Vec<&Event> = events.iter().filter(|event| event.device == device).collect();
        // XSpace.planes
        space.push(Field::bytes(1, plane(number as u64, device, &of_device).to_bytes()));
    }
    space.to_bytes().to_vec()
}

fn plane(number: u64, device: &str, events: &[&Event]) -> Message {
    let names = numbered(events.iter().map(|event| event.name.as_str()));
    let stats = numbered(events.iter().flat_map(|event| event.numbers.iter().map(|&(name, _)| name)));
    let mut threads: BTreeMap<i64, Vec<&Event>> = BTreeMap::new();
    for event in events {
        threads.entry(event.thread).or_default().push(event);
    }
    let mut plane = Message::default();
    plane.push(Field::varint(1, number));
    plane.push(Field::bytes(2, format!("{DEVICE_PREFIX}{device}").into_bytes()));
    for (thread, events) in threads {
        plane.push(Field::bytes(3, line(thread, &events, &names, &stats).to_bytes()));
    }
    // Maps of numbers to metadata: of events, of their numbers.
    for (field, metadata) in [(4, &names), (5, &stats)] {
        for (name, &number) in metadata {
            let mut value = Message::default();
            value.push(Field::varint(1, number));
            value.push(Field::bytes(2, name.as_bytes().to_vec()));
            let mut entry = Message::default();
            entry.push(Field::varint(1, number));
            entry.push(Field::bytes(2, value.to_bytes()));
            plane.push(Field::bytes(field, entry.to_bytes()));
        }
    }
    plane
}

fn line(thread: i64, events: &[&Event], names: &Numbers<'_>, stats: &Numbers<'_>) -> Message {
    let begin = events.iter().map(|event| event.begin).min().unwrap_or_default();
    let mut line = Message::default();
    line.push(Field::varint(1, thread.unsigned_abs()));
    line.push(Field::bytes(2, format!("kernels, thread {thread}").into_bytes()));
    line.push(Field::varint(3, begin));
    for event in events {
        let mut message = Message::default();
        message.push(Field::varint(1, names[event.name.as_str()]));
        message.push(Field::varint(2, (event.begin - begin).saturating_mul(PICOSECONDS)));
        message.push(Field::varint(3, event.duration.saturating_mul(PICOSECONDS)));
        for &(name, value) in &event.numbers {
            let mut stat = Message::default();
            stat.push(Field::varint(1, stats[name]));
            stat.push(Field::varint(3, value));
            message.push(Field::bytes(4, stat.to_bytes()));
        }
        line.push(Field::bytes(4, message.to_bytes()));
    }
    line
}

/// Names by the numbers that metadata go by in a plane.
type Numbers<'a> = BTreeMap<&'a str, u64>;

/// Numbers from 1, in the order of the names.
fn numbered<'a>(names: impl Iterator<Item = &'a str>) -> Numbers<'a> {
    let names: BTreeSet<&str> = names.collect();
    names.into_iter().zip(1..).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(device: &str, thread: i64, name: &str, begin: u64) -> Event {
        Event {
            device: device.to_owned(),
            thread,
            name: name.to_owned(),
            begin,
            duration: 5,
            numbers: vec![("cycles", 300)],
        }
    }

    #[test]
    fn no_events_are_no_bytes() {
        assert!(serialize(&[]).is_empty());
    }

    /// Written out by hand after xplane.proto, field by field.
    #[test]
    fn the_bytes_are_those_of_the_schema() {
        let bytes = serialize(&[event("d", 7, "k", 100), event("d", 7, "k", 102)]);
        let plane: Vec<u8> = [
            &[0x08, 0][..],
            b"\x12\x10/device:CUSTOM:d",
            // The line: id, name, time of its first event in nanoseconds, events.
            &[0x1a, 56],
            &[0x08, 7],
            b"\x12\x11kernels, thread 7",
            &[0x18, 100],
            // Which event, after how many picoseconds, for how many, number 1 is 300.
            &[0x22, 14, 0x08, 1, 0x10, 0, 0x18, 0x88, 0x27, 0x22, 5, 0x08, 1, 0x18, 0xac, 0x02],
            &[0x22, 15, 0x08, 1, 0x10, 0xd0, 0x0f, 0x18, 0x88, 0x27, 0x22, 5, 0x08, 1, 0x18, 0xac, 0x02],
            b"\x22\x09\x08\x01\x12\x05\x08\x01\x12\x01k",
            b"\x2a\x0e\x08\x01\x12\x0a\x08\x01\x12\x06cycles",
        ]
        .concat();
        let expected = [&[0x0a, u8::try_from(plane.len()).unwrap()][..], &plane].concat();
        assert_eq!(bytes, expected);
    }

    #[test]
    fn devices_have_planes_and_threads_lines() {
        let events = [event("a", 1, "k", 1), event("b", 1, "k", 1), event("b", 2, "k", 1)];
        let space = Message::parse(&serialize(&events).into(), "XSpace").unwrap();
        let planes = space.all_bytes(1).map(|bytes| Message::parse(bytes, "XPlane").unwrap());
        let lines: Vec<usize> = planes.map(|plane| plane.all_bytes(3).count()).collect();
        assert_eq!(lines, [1, 2]);
    }
}
