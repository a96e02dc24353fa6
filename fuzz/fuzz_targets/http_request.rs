#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sessile_server::fuzz::http_request(bytes));
