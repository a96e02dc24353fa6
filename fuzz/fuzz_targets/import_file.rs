#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sessile::fuzz::import_file(bytes));
