// SPDX-License-Identifier: Apache-2.0
// The search runs in a worker, and a browser starts none from a file. This class does what Worker does, in a hidden frame.
(() => {
  if (location.protocol !== "file:") return
  // The search asks for this name, and then looks for its own files next to its script.
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.frame.title = "search"
      document.body.appendChild(this.frame)
      window.addEventListener("message", event => {
        if (event.source !== this.frame.contentWindow) return
        const message = new MessageEvent("message", { data: event.data })
        this.dispatchEvent(message)
        if (this.onmessage) this.onmessage(message)
      })
      // importScripts() is synchronous; a script that is written into the document is loaded in order as well.
      this.ready = new Promise(done => { this.frame.addEventListener("load", done, { once: true }) })
      const page = this.frame.contentDocument
      page.open()
      page.write(
        "<script>var parentWindow = parent; postMessage = data => parentWindow.postMessage(data, '*');" +
        "var importScripts = (...urls) => Promise.all(urls.map(url => new Promise((done, failed) => {" +
        "const script = document.createElement('script'); script.src = url; script.onload = done; script.onerror = failed;" +
        "document.body.appendChild(script)})))<\/script>" +
        "<body><script src='" + url + "'><\/script></body>")
      page.close()
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() { this.frame.remove() }
  }
})()
