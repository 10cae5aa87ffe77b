//! Any bytes are read as an event stream of chat completions without a panic, and where the network cuts them
//! changes neither the message nor the kind of the error. The first byte says where.
#![no_main]

use archon_providers::read_chat_stream;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((seed, bytes)) = bytes.split_first() else { return };
    let whole = read_chat_stream([bytes.to_vec()]);
    let step = usize::from(*seed) % 7 + 1;
    let cut = read_chat_stream(bytes.chunks(step).map(<[u8]>::to_vec));
    match (whole, cut) {
        (Ok(whole), Ok(cut)) => assert_eq!(whole, cut),
        (Err(whole), Err(cut)) => assert_eq!(whole.code(), cut.code(), "{whole} / {cut}"),
        (whole, cut) => panic!("{whole:?} / {cut:?}"),
    }
});
