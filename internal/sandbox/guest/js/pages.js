// pages: the items of a list that a tool returns page by page. The host knows how each tool
// pages, so that what is here only asks for one page after the other.
'use strict';
const { pageCaller, placed } = require('calls');
const { argumentsOf } = require('servers');
const Place = Error;

exports.pages = function pages(tool, ...args) {
	const call = argumentsOf(tool, args);
	if (call === undefined) {
		throw new TypeError('pages takes a function of a server, such as pages(github.listIssues, { owner, repo })');
	}
	return itemsOf(pageCaller(call.server, call.tool, call.args), new Place());
};

// itemsOf gives the items. What fails is told to have failed where the program called pages.
async function* itemsOf(ask, place) {
	let list = 0;
	do {
		let page;
		try {
			page = await ask(list);
		} catch (error) {
			throw placed(error, place);
		}
		for (let i = 0; i < page.items.length; i++) {
			yield page.items[i];
		}
		list = page.list;
	} while (list);
}
