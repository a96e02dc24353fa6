#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sessile::fuzz::short_texts(bytes));
