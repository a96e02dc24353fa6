#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sessile::fuzz::kept_answers(bytes));
