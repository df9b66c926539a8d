// SPDX-License-Identifier: Apache-2.0
// People paste a whole error line into the search. Its colons and quotes are operators there, and its common words find every
// page; this stands between the page and the search worker, and asks for words alone. The page whose error line is most like
// the pasted one is then put first.
(() => {
  const SETUP = 0, QUERY = 2, RESULT = 3 // the messages of the search worker
  const LINE = 3 // words: fewer are a search for a term
  const MOST = 24 // words that are searched for, the rarest: a pasted traceback has hundreds
  const ALIKE = 0.4 // of two lines, from 0 to 1; below it the order is that of the search
  const Plain = window.Worker // or iframe-worker.js's, where the site is opened from its files

  const wordsOf = text => [...new Set(text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(word => word.length > 1))]
  const plain = html => new DOMParser().parseFromString(html, "text/html").body.textContent

  // The error lines of each page: its heading, and the lines below "What users see". A word weighs more the rarer it is.
  class Lines {
    constructor(docs) {
      const pages = new Map()
      for (const { location, title, text } of docs) {
        const [page, anchor] = location.split("#")
        if (!anchor) pages.set(page, [plain(title)])
        else if (anchor === "what-users-see") pages.get(page)?.push(...plain(text).split("\n"))
      }
      this.lines = new Map([...pages].map(([page, lines]) => [page, lines.map(wordsOf)]))
      this.counts = new Map()
      for (const lines of this.lines.values())
        for (const word of new Set(lines.flat())) this.counts.set(word, (this.counts.get(word) ?? 0) + 1)
    }
    weight(words) {
      return words.reduce((sum, word) => sum + Math.log(1 + this.lines.size / (this.counts.get(word) ?? 1)), 0)
    }
    rarest(words) {
      return words.slice().sort((a, b) => (this.counts.get(a) ?? 0) - (this.counts.get(b) ?? 0)).slice(0, MOST)
    }
    // 1: the same words; 0: none in common.
    alike(page, words) {
      const asked = this.weight(words)
      return Math.max(0, ...(this.lines.get(page) ?? []).map(line =>
        2 * this.weight(line.filter(word => words.includes(word))) / (asked + this.weight(line) || 1)))
    }
    // `groups`: the found parts of each page.
    sorted(groups, words) {
      const likeness = group => {
        const alike = this.alike(group[0].location.split("#")[0], words)
        return alike < ALIKE ? 0 : alike
      }
      return groups.map(group => [likeness(group), group]).sort((a, b) => b[0] - a[0]).map(([, group]) => group)
    }
  }

  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.asked = [] // the words of the questions without an answer yet, in their order
      this.worker = new Plain(url)
      this.worker.addEventListener("message", ({ data }) => {
        const words = data.type === RESULT ? this.asked.shift() : undefined
        if (words) data.data.items = this.lines.sorted(data.data.items, words)
        this.dispatchEvent(new MessageEvent("message", { data }))
      })
    }
    postMessage(message) {
      if (message.type === SETUP) this.lines = new Lines(message.data.docs)
      if (message.type === QUERY) {
        const words = this.lines ? wordsOf(message.data) : []
        const line = words.length >= LINE
        this.asked.push(line ? words : undefined)
        // ^1, a weight of one, keeps the search from looking for every word that begins so. Besides the time it saves, lunr
        // sometimes finds there a word that is in no page, and fails.
        if (line) message = { ...message, data: this.lines.rarest(words).map(word => word + "^1").join(" ") }
      }
      this.worker.postMessage(message)
    }
    terminate() { this.worker.terminate() }
  }
})()
