# Two commands matter: `make run` tries Weir without any account, `make test` checks everything.
# Each step is a small script under scripts/ that can be run by itself.

.PHONY: help run page test icons

help:
	@echo 'make run     build the page and the program, then serve the practice upstream'
	@echo 'make test    check everything, from formatting to the packed desktop program'
	@echo 'make page    build only the page, into ui/dist'
	@echo 'make icons   draw all icons anew from icons/weir.svg'

run: page
	cargo run --locked -p weir -- serve --practice

page:
	@scripts/page.sh build

test:
	@scripts/test.sh

icons:
	@scripts/icons.sh
