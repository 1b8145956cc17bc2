# Two commands matter: `make run` tries Weir without any account, `make test` checks everything.
# Each step is a small script under scripts/ that can be run by itself.

.PHONY: help run page test faults measure bench icons

help:
	@echo 'make run     build the page and the program, then serve the practice upstream'
	@echo 'make test    check everything, from formatting to the packed desktop program'
	@echo 'make faults  break backend and client in 2,000 seeded ways, and check what Weir did (debug build, some minutes)'
	@echo 'make measure what it costs while idle: sizes, start, memory, processor time (release build, ~20 min)'
	@echo 'make bench   what it adds to a stream beside nginx and no proxy (release build, then 5 to 8 minutes); QUICK=1 is short'
	@echo 'make page    build only the page, into ui/dist'
	@echo 'make icons   draw all icons anew from icons/weir.svg'

run: page
	cargo run --locked -p weir -- serve --practice

page:
	@scripts/page.sh build

test:
	@scripts/test.sh

faults:
	@scripts/faults.sh

measure: page
	scripts/place-headless.sh --release
	cargo build --release --locked -p weir-desktop
	node scripts/measure.mjs

bench:
	@scripts/bench.sh $(if $(QUICK),--quick)

icons:
	@scripts/icons.sh
